package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

// open gives the embedder and how a memory has it: nil for none.
func (s embedderSettings) open() (embed.Embedder, []recall.Option, error) {
	switch s.Embedder {
	case embedderNone:
		return nil, nil, nil
	case embedderOpenAI:
		client, err := remote.NewOpenAI(s.openAI())
		return client, []recall.Option{recall.WithRemoteEmbedder(client)}, err
	default:
		return embed.Static{}, []recall.Option{recall.WithEmbedder(embed.Static{})}, nil
	}
}

// openFor is open for an index: one for the embedder in the program has that one,
// whatever the settings say.
func (s embedderSettings) openFor(ctx context.Context, database databaseSettings, index string) (embed.Embedder, []recall.Option, error) {
	err := database.withMemory(ctx, nil, func(m *recall.Memory) error {
		indexes, err := m.Indexes(ctx)
		for _, each := range indexes {
			if each.Name == index && each.Model == (embed.Static{}).Model() {
				s.Embedder = embedderStatic
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return s.open()
}

// probeTime bounds the wait at start for a service that does not answer.
const probeTime = 5 * time.Second

// check fails unless the embedder works and the live index is for its vectors. A
// service that is out of reach for now is no failure, where its model is that of
// the index: log hears of it.
func (s embedderSettings) check(ctx context.Context, memory *recall.Memory, embedder embed.Embedder, log io.Writer) error {
	if embedder == nil {
		return nil
	}
	live, err := memory.LiveIndex(ctx)
	if client, ok := embedder.(*remote.OpenAI); ok && err == nil && live.Model == client.Model() {
		client.Expect(live.Dimensions)
	}
	probing, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if _, err := embed.Probe(probing, embedder); err != nil {
		if !errors.Is(err, embed.ErrUnavailable) || embedder.Dimensions() == 0 {
			return s.wrong(err)
		}
		fmt.Fprintf(log, "pgrecall: %s; until it answers, messages wait for their vectors\n", err)
	}
	if err := memory.CheckEmbedder(ctx); err != nil {
		return s.wrong(err)
	}
	return nil
}

func (s embedderSettings) wrong(err error) error {
	return fmt.Errorf("PGRECALL_EMBEDDER (--embedder): %s: %w", s.Embedder, err)
}

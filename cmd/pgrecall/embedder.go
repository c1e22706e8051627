package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// memory gives a memory with the embedder.
func (s embedderSettings) memory(pool *pgxpool.Pool, limits recall.Limits) *recall.Memory {
	if s.Embedder == embedderNone {
		return recall.New(pool, limits)
	}
	return recall.New(pool, limits, recall.WithEmbedder(embed.Static{}))
}

// check fails unless the embedder works and the live index is for its vectors.
func (s embedderSettings) check(ctx context.Context, memory *recall.Memory) error {
	if s.Embedder == embedderNone {
		return nil
	}
	_, err := embed.Probe(ctx, embed.Static{})
	if err == nil {
		err = memory.CheckEmbedder(ctx)
	}
	if err != nil {
		return fmt.Errorf("PGRECALL_EMBEDDER (--embedder): %s: %w", s.Embedder, err)
	}
	return nil
}

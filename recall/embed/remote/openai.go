// Package remote embeds by any service with OpenAI's /v1/embeddings.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"golang.org/x/sync/errgroup"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/service"
)

// OpenAI embeds texts through a service with OpenAI's /v1/embeddings.
type OpenAI struct {
	config    OpenAIConfig
	service   openai.EmbeddingService
	transport *http.Transport
	// The requests under way. Queries have their own slots: somebody waits for
	// them, and a backfill must not be in their way. So have probes, which must not
	// wait for the requests that hang.
	querySlots, documentSlots, probeSlots chan struct{}
	// dimensions is 0 until the configuration, Expect or the first reply tells.
	dimensions atomic.Int64
}

var _ embed.Embedder = (*OpenAI)(nil)

// NewOpenAI checks config; it does not call the service. [OpenAI.Close] frees
// its connections.
func NewOpenAI(config OpenAIConfig) (*OpenAI, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	transport := newTransport(3 * config.Concurrency)
	e := &OpenAI{
		config:        config,
		transport:     transport,
		querySlots:    make(chan struct{}, config.Concurrency),
		documentSlots: make(chan struct{}, config.Concurrency),
		probeSlots:    make(chan struct{}, config.Concurrency),
		// The service alone: a whole client would read OPENAI_... from the
		// environment.
		service: openai.NewEmbeddingService(
			option.WithBaseURL(config.BaseURL),
			option.WithHTTPClient(&http.Client{Transport: service.BoundedReplies{Next: transport, Bytes: maxReplyBytes}}),
			// The client's own retries end with the first timeout and wait for
			// minutes where the service says so.
			option.WithMaxRetries(0),
		),
	}
	if config.Key != "" {
		e.service.Options = append(e.service.Options, option.WithAPIKey(config.Key))
	}
	e.dimensions.Store(int64(config.Dimensions))
	return e, nil
}

// newTransport keeps as many connections as there may be requests; Go's
// default of two would open a new one for nearly every request.
func newTransport(connections int) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = connections
	return transport
}

// Close frees the idle connections.
func (e *OpenAI) Close() { e.transport.CloseIdleConnections() }

// Model is the configured name.
func (e *OpenAI) Model() string { return e.config.Model }

// Dimensions is what was configured or expected, else 0 until the first reply.
func (e *OpenAI) Dimensions() int { return int(e.dimensions.Load()) }

// Expect says what dimensions the vectors must have where the configuration
// does not: those of the index that they go into. Replies are held to them, but
// the service is not asked for them, which not every service understands. Once
// the dimensions are known it has no effect.
func (e *OpenAI) Expect(dimensions int) { e.dimensions.CompareAndSwap(0, int64(dimensions)) }

// MaxTokens is what was configured.
func (e *OpenAI) MaxTokens() int { return e.config.MaxTokens }

// BatchSize is the most texts of one request.
func (e *OpenAI) BatchSize() int { return e.config.BatchSize }

// LengthPrior is false.
func (e *OpenAI) LengthPrior() bool { return false }

// Embed asks for the vectors in batches, several at once, and gives them the
// length 1. Blank texts are not sent and have no vector. Temporary failures of
// queries are tried again before they are returned, see [OpenAIConfig].
func (e *OpenAI) Embed(ctx context.Context, texts []string, kind embed.Kind) ([]embed.Vector, error) {
	vectors := make([]embed.Vector, len(texts))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(e.config.Concurrency)
	for positions := range slices.Chunk(sayingSomething(texts), e.config.BatchSize) {
		group.Go(func() error {
			batch := make([]string, len(positions))
			for i, position := range positions {
				batch[i] = e.prefix(kind) + texts[position]
			}
			got, err := e.embedBatch(groupCtx, batch, kind)
			for i, vector := range got {
				vectors[positions[i]] = vector
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return vectors, nil
}

// sayingSomething gives the positions of the texts that are not blank.
func sayingSomething(texts []string) []int {
	var positions []int
	for i, text := range texts {
		if strings.TrimSpace(text) != "" {
			positions = append(positions, i)
		}
	}
	return positions
}

func (e *OpenAI) prefix(kind embed.Kind) string {
	if kind == embed.Query {
		return e.config.QueryPrefix
	}
	return e.config.DocumentPrefix
}

var errBudget = errors.New("embed: out of time")

// embedBatch waits for its turn, then makes one request with its retries. The time
// that it has begins with its turn, so that a request does not fail for those
// before it; somebody who waits for a query has no time for them either.
func (e *OpenAI) embedBatch(ctx context.Context, batch []string, kind embed.Kind) ([]embed.Vector, error) {
	attempts := e.attempts(kind)
	budget := e.config.Timeout * time.Duration(attempts)
	inTime := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, budget, errBudget)
	}
	if kind == embed.Query {
		var cancel context.CancelFunc
		ctx, cancel = inTime(ctx)
		defer cancel()
	}
	slots := e.slots(ctx, kind)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, waitError(ctx, budget)
	}
	ctx, cancel := inTime(ctx)
	defer cancel()
	return retried(ctx, attempts, e.config.Backoff, func() ([]embed.Vector, error) {
		vectors, err := e.request(ctx, batch)
		if err != nil && ctx.Err() != nil {
			return nil, waitError(ctx, budget)
		}
		return vectors, err
	})
}

// attempts is how often a request is tried. Documents come from jobs and backfills,
// which try again themselves, and tell better what is worth it.
func (e *OpenAI) attempts(kind embed.Kind) int {
	if kind == embed.Query {
		return e.config.Attempts
	}
	return 1
}

func (e *OpenAI) slots(ctx context.Context, kind embed.Kind) chan struct{} {
	switch {
	case embed.IsProbe(ctx):
		return e.probeSlots
	case kind == embed.Query:
		return e.querySlots
	default:
		return e.documentSlots
	}
}

// waitError is the error of a context that has ended: of the caller's, or of
// the time that a batch has.
func waitError(ctx context.Context, budget time.Duration) error {
	if errors.Is(context.Cause(ctx), errBudget) {
		return &embed.Error{Reason: embed.ErrUnavailable, Detail: fmt.Sprintf("no answer within %s", budget)}
	}
	return embed.ContextError(ctx.Err())
}

// request makes one attempt.
func (e *OpenAI) request(ctx context.Context, batch []string) ([]embed.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	params := openai.EmbeddingNewParams{
		Model: e.config.Model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: batch},
	}
	if e.config.Dimensions > 0 {
		params.Dimensions = openai.Int(int64(e.config.Dimensions))
	}
	var body []byte
	var response *http.Response
	_, err := e.service.New(ctx, params,
		// As bytes, since the client reads null and "x" as the number 0.
		option.WithResponseBodyInto(&body),
		// Of an error that is not OpenAI's JSON, the client loses the status.
		option.WithResponseInto(&response),
	)
	if err != nil {
		return nil, requestError(ctx, err, response, e.config.Timeout)
	}
	return e.read(body, len(batch))
}

// read reads a reply and holds it to the dimensions that are known, or makes
// its dimensions the known ones.
func (e *OpenAI) read(body []byte, texts int) ([]embed.Vector, error) {
	vectors, err := readReply(body, texts)
	if err != nil {
		return nil, err
	}
	got := len(vectors[0])
	e.dimensions.CompareAndSwap(0, int64(got))
	for _, vector := range vectors {
		if want := e.Dimensions(); len(vector) != want {
			return nil, embed.ReplyErrorf("%d dimensions, not %d", len(vector), want)
		}
	}
	return vectors, nil
}

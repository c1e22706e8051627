package embed

import (
	"context"
	"sync"
	"time"
)

// mergeWait is how long a small call waits for others to be merged with: little to
// a service that is asked over a network.
const mergeWait = 10 * time.Millisecond

// Merger is an [Embedder] that makes one call of small ones for documents that
// come together, since a service takes hardly longer for many texts than for one.
// Where the merged call fails, each caller's texts are asked alone, so that nobody
// is blamed for another's; but not where the probe says that any text fails now.
type Merger struct {
	Embedder
	size int

	mu   sync.Mutex
	open *mergedCall // takes callers; nil without any
}

// mergedCall is a call for several callers.
type mergedCall struct {
	texts   []string
	callers int
	waiting int // callers that have not left
	timer   *time.Timer
	ctx     context.Context //nolint:containedctx // of the call, not of one of its callers
	cancel  context.CancelFunc

	done    chan struct{} // closed once these are there:
	vectors []Vector
	err     error
}

// NewMerger merges calls up to size texts, the most of one request to the service.
func NewMerger(e Embedder, size int) *Merger { return &Merger{Embedder: e, size: size} }

// Embed merges calls for documents, unless they are large or to be made [Alone].
func (m *Merger) Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	if kind != Document || len(texts) == 0 || len(texts) >= m.size || laneOf(ctx) != merging {
		return m.Embedder.Embed(ctx, texts, kind)
	}
	call, first := m.join(ctx, texts)
	select {
	case <-call.done:
	case <-ctx.Done():
		m.leave(call)
		return nil, ContextError(ctx.Err())
	}
	switch {
	case call.err == nil:
		return call.vectors[first : first+len(texts)], nil
	case call.callers == 1 || isGeneral(call.err):
		return nil, call.err
	default:
		return m.Embedder.Embed(ctx, texts, kind)
	}
}

// join adds texts to the call that is open, and says where in it they begin.
func (m *Merger) join(ctx context.Context, texts []string) (call *mergedCall, first int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open != nil && len(m.open.texts)+len(texts) > m.size {
		m.send(m.open)
	}
	if m.open == nil {
		m.open = m.newCall(ctx)
	}
	call, first = m.open, len(m.open.texts)
	call.texts = append(call.texts, texts...)
	call.callers++
	call.waiting++
	if len(call.texts) == m.size {
		m.send(call)
	}
	return call, first
}

// newCall opens a call. Of the context of its first caller it takes the values
// alone: others wait for the answer when that caller is gone.
func (m *Merger) newCall(ctx context.Context) *mergedCall {
	call := &mergedCall{done: make(chan struct{})}
	call.ctx, call.cancel = context.WithCancel(context.WithoutCancel(ctx))
	call.timer = time.AfterFunc(mergeWait, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.send(call)
	})
	return call
}

// send makes a call, unless it is under way already. m.mu is held.
func (m *Merger) send(call *mergedCall) {
	if m.open != call {
		return
	}
	m.open = nil
	call.timer.Stop()
	go func() {
		defer call.cancel()
		defer close(call.done)
		call.vectors, call.err = m.Embedder.Embed(call.ctx, call.texts, Document)
		if call.err == nil || call.callers == 1 {
			return
		}
		if failure := generalFailure(call.ctx, m.Embedder, call.err); failure != nil {
			call.err = &general{failure}
		}
	}()
}

// leave ends a call that nobody waits for any more.
func (m *Merger) leave(call *mergedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if call.waiting--; call.waiting == 0 {
		call.cancel()
	}
}

package server

import (
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pgrecall/pgrecall/recall"
)

// limitedCallers is how many callers' requests are counted: beyond it those who were
// away the longest begin anew.
const limitedCallers = 10_000

// limiter bounds how often each caller comes. A nil one does not.
type limiter struct {
	limit   rate.Limit
	burst   int
	callers *lru.Cache[string, *rate.Limiter]
}

// newLimiter gives a limiter for requests a second beyond a burst; nil for no limit.
func newLimiter(perSecond, burst int) *limiter {
	if perSecond == 0 {
		return nil
	}
	callers, err := lru.New[string, *rate.Limiter](limitedCallers)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &limiter{limit: rate.Limit(perSecond), burst: max(1, burst), callers: callers}
}

// take counts a request, or refuses it.
func (l *limiter) take(caller recall.Caller) error {
	if l == nil {
		return nil
	}
	now := time.Now()
	turn := l.of(caller.ID).ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	turn.CancelAt(now)
	return &refusal{status: http.StatusTooManyRequests, text: "Too many requests", retryAfter: wait}
}

// of gives what counts the requests of a caller.
func (l *limiter) of(id string) *rate.Limiter {
	if known, ok := l.callers.Get(id); ok {
		return known
	}
	counting := rate.NewLimiter(l.limit, l.burst)
	if meanwhile, ok, _ := l.callers.PeekOrAdd(id, counting); ok {
		return meanwhile
	}
	return counting
}

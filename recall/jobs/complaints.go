package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// complainEvery is how often a log hears of one reason why jobs wait: all of them
// wait for the same.
const complainEvery = time.Minute

// complaints tells a log why jobs wait.
type complaints struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   map[string]time.Time // when each was told last
}

// hear tells the log, unless it has just been told.
func (c *complaints) hear(ctx context.Context, what string, err error) {
	if c.isNew(what + ": " + err.Error()) {
		c.logger.WarnContext(ctx, what, slog.String("error", err.Error()))
	}
}

func (c *complaints) isNew(complaint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for old, told := range c.last {
		if now.Sub(told) >= complainEvery {
			delete(c.last, old)
		}
	}
	_, known := c.last[complaint]
	if !known {
		c.last[complaint] = now
	}
	return !known
}

// warnings leaves out what is less than a warning.
type warnings struct{ slog.Handler }

// Enabled says whether the log wants a level.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs gives the same with attributes.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup gives the same in a group.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

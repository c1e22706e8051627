package remote

import (
	"errors"
	"fmt"
	"time"

	"github.com/pgrecall/pgrecall/recall/service"
)

// OpenAIConfig says how to reach a service with OpenAI's /v1/embeddings:
// OpenAI, Ollama, TEI, vLLM, LiteLLM. A zero takes the default.
type OpenAIConfig struct {
	// BaseURL is where /embeddings is appended; default https://api.openai.com/v1.
	BaseURL string
	// Key is sent as a bearer token; empty for services that want none.
	Key string
	// Model is required.
	Model string
	// Dimensions is asked of the service, 1 to 65,536. With 0 nothing is asked,
	// and [OpenAI.Expect] or the first reply tells.
	Dimensions int
	// MaxTokens is how many tokens of a text the model reads, 0 when unknown.
	MaxTokens int
	// QueryPrefix and DocumentPrefix are put before each text, as some models
	// want it: "query: ", "passage: ".
	QueryPrefix    string
	DocumentPrefix string
	// BatchSize is the most texts of one request, 1 to 2,048; default 32, the
	// most that TEI takes unless told otherwise.
	BatchSize int
	// Timeout bounds one attempt; default 10 s. A query with all its attempts and
	// the waits between them takes at most Attempts times Timeout, a request for
	// documents that once, from its turn on.
	Timeout time.Duration
	// Attempts is how often a query is tried at all, 1 to 10; default 3. Documents
	// are tried once: who embeds them tries again.
	Attempts int
	// Backoff is the wait before the second attempt, doubled before each
	// further one and spread at random; default 500 ms. A longer Retry-After of
	// the service comes first; one of more than 2 s ends the attempts.
	Backoff time.Duration
	// Concurrency is the most requests under way at once, 1 to 1,000, for
	// queries and for documents apart; default 8.
	Concurrency int
}

// The defaults and the bounds of an [OpenAIConfig].
const (
	defaultBaseURL     = "https://api.openai.com/v1"
	defaultBatchSize   = 32
	defaultTimeout     = 10 * time.Second
	defaultAttempts    = 3
	defaultBackoff     = 500 * time.Millisecond
	defaultConcurrency = 8

	maxDimensions  = 65_536
	maxBatchSize   = 2048
	maxAttempts    = 10
	maxConcurrency = 1000
)

func (c OpenAIConfig) withDefaults() OpenAIConfig {
	setDefault(&c.BaseURL, defaultBaseURL)
	setDefault(&c.BatchSize, defaultBatchSize)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Attempts, defaultAttempts)
	setDefault(&c.Backoff, defaultBackoff)
	setDefault(&c.Concurrency, defaultConcurrency)
	return c
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// check names the first field that is wrong, and never shows the key or the
// URL, which may hold a password.
func (c OpenAIConfig) check() error {
	if c.Model == "" {
		return errors.New("the embedding model is missing")
	}
	if err := service.Check("embedding", c.BaseURL, c.Key); err != nil {
		return err
	}
	for _, field := range []struct {
		name     string
		value    int
		min, max int
	}{
		{"dimensions", c.Dimensions, 0, maxDimensions},
		{"max tokens", c.MaxTokens, 0, 1 << 30},
		{"batch size", c.BatchSize, 1, maxBatchSize},
		{"attempts", c.Attempts, 1, maxAttempts},
		{"concurrency", c.Concurrency, 1, maxConcurrency},
	} {
		if field.value < field.min || field.value > field.max {
			return fmt.Errorf("the embedding %s are %d, not %d to %d", field.name, field.value, field.min, field.max)
		}
	}
	if c.Timeout < 0 || c.Backoff < 0 {
		return errors.New("the embedding timeout and backoff cannot be negative")
	}
	return nil
}

// Package chat asks a language model for a text.
package chat

import "context"

// Prompt is what a model is asked.
type Prompt struct {
	// Model is its name; empty for the one that the service is configured with.
	Model string
	// Instructions say what to do, Text with what.
	Instructions string
	Text         string
}

// Service answers prompts. It is safe for concurrent use.
type Service interface {
	// Complete gives the model's answer, which is not empty. Its errors are a
	// [*service.Error] and, where the caller has cancelled the call, that of ctx.
	Complete(ctx context.Context, prompt Prompt) (string, error)
}

// Package remote asks any service with OpenAI's /v1/chat/completions.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/pgrecall/pgrecall/recall/chat"
	"github.com/pgrecall/pgrecall/recall/service"
)

// OpenAI asks a service with OpenAI's /v1/chat/completions.
type OpenAI struct {
	config    Config
	service   openai.ChatCompletionService
	transport *http.Transport
}

var _ chat.Service = (*OpenAI)(nil)

// Config says how to reach a service with OpenAI's /v1/chat/completions: OpenAI,
// Ollama, vLLM, LiteLLM.
type Config struct {
	// BaseURL is where /chat/completions is appended; required.
	BaseURL string
	// Key is sent as a bearer token; empty for services that want none.
	Key string
	// Model is what is asked where a prompt names none; required.
	Model string
	// Timeout bounds a request; 30 s when 0.
	Timeout time.Duration
}

// DefaultTimeout is the time of a request where a [Config] says nothing.
const DefaultTimeout = 30 * time.Second

// maxReplyBytes bounds a reply, of which a title needs some hundred.
const maxReplyBytes = 1 << 20

// NewOpenAI checks config; it does not call the service. [OpenAI.Close] frees its
// connections.
func NewOpenAI(config Config) (*OpenAI, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	if config.Model == "" {
		return nil, errors.New("the chat model is missing")
	}
	if config.Timeout < 0 {
		return nil, errors.New("the chat timeout cannot be negative")
	}
	if err := service.Check("chat", config.BaseURL, config.Key); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c := &OpenAI{
		config:    config,
		transport: transport,
		// The service alone: a whole client would read OPENAI_... from the
		// environment.
		service: openai.NewChatCompletionService(
			option.WithBaseURL(config.BaseURL),
			option.WithHTTPClient(&http.Client{Transport: service.BoundedReplies{Next: transport, Bytes: maxReplyBytes}}),
			option.WithMaxRetries(0), // who asks can wait better
		),
	}
	if config.Key != "" {
		c.service.Options = append(c.service.Options, option.WithAPIKey(config.Key))
	}
	return c, nil
}

// Close frees the idle connections.
func (c *OpenAI) Close() { c.transport.CloseIdleConnections() }

// Complete makes one request. It sets nothing that some models refuse, such as a
// temperature or a limit of tokens.
func (c *OpenAI) Complete(ctx context.Context, prompt chat.Prompt) (string, error) {
	attempt, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var body []byte
	var response *http.Response
	_, err := c.service.New(attempt, openai.ChatCompletionNewParams{
		Model: cmp.Or(prompt.Model, c.config.Model),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(prompt.Instructions), openai.UserMessage(prompt.Text),
		},
	}, option.WithResponseBodyInto(&body), option.WithResponseInto(&response))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "", ctx.Err()
	case err != nil:
		return "", service.ErrorOf(attempt, err, response, c.config.Timeout)
	}
	return readReply(body)
}

// reply is what is read of an answer to /v1/chat/completions.
type reply struct {
	Choices []struct {
		Message struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
}

func readReply(body []byte) (string, error) {
	var r reply
	if json.Unmarshal(body, &r) != nil || len(r.Choices) == 0 {
		return "", &service.Error{Reason: service.ErrReply, Detail: "not the JSON of a chat completion"}
	}
	choice := r.Choices[0]
	switch {
	case choice.FinishReason == "content_filter":
		return "", rejected("its content filter")
	case choice.Message.Refusal != "":
		return "", rejected("a refusal")
	case strings.TrimSpace(choice.Message.Content) == "":
		return "", rejected("an empty answer")
	}
	return choice.Message.Content, nil
}

func rejected(detail string) error {
	return &service.Error{Reason: service.ErrRejected, Detail: detail}
}

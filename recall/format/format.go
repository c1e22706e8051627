// Package format gives stored messages the shapes that user interfaces and the
// APIs of models take.
//
// Stored messages are in Mastra's DB format, whose content holds parts. Older
// ones keep tool calls, reasoning, files and text beside the parts; those are
// read as parts too, so that no format loses them. Whatever content holds, a
// conversion gives valid JSON: what a format has no place for is left out, text
// never is.
//
// The UI formats follow Mastra's own converters (toAISdkV5Messages and
// toAISdkV4Messages of @mastra/ai-sdk 1.10), but for what those lose; the
// comments at such places say so.
package format

import (
	"encoding/json"

	"github.com/pgrecall/pgrecall/recall"
)

// Format names a shape of messages.
type Format string

// The formats.
const (
	// AISDKv5 is the UIMessage of Vercel's AI SDK 5.
	AISDKv5 Format = "aisdk-v5"
	// AISDKv4 is the UIMessage of Vercel's AI SDK 4. It has no tool calls that
	// wait for their result.
	AISDKv4 Format = "aisdk-v4"
	// OpenAI is the message of OpenAI's chat completions. Reasoning, sources, data
	// and the files of an assistant have no place in it.
	OpenAI Format = "openai"
	// Anthropic is the message of Anthropic's Messages API, with the same gaps. A
	// message of the role "system" is the caller's to move out of the list.
	Anthropic Format = "anthropic"
)

var converters = map[Format]func([]turn) []Message{
	AISDKv5:   toAISDKv5,
	AISDKv4:   toAISDKv4,
	OpenAI:    toOpenAI,
	Anthropic: toAnthropic,
}

// Known reports whether f is one of the formats.
func (f Format) Known() bool { return converters[f] != nil }

// ForUI reports whether f is for user interfaces, whose messages may have
// members of an application's own. Models' APIs refuse those.
func (f Format) ForUI() bool { return f == AISDKv5 || f == AISDKv4 }

// Message is a message in a format.
type Message struct {
	// Of is the index of the stored message that it was made of.
	Of int
	// JSON is an object.
	JSON json.RawMessage
}

// Convert gives messages in a format, which must be a known one, in their order.
//
// In a UI format they are as many as there are messages, but for Mastra's
// signals, which join the assistant's message beside them, and its system
// reminders, which are not for people and are left out. In the formats of
// models one message can become several, and none where it says nothing; a tool
// call that has no result is there only if its message is the last, for the
// caller to answer.
func Convert(f Format, messages []recall.Message) []Message {
	turns := make([]turn, len(messages))
	for i, message := range messages {
		turns[i] = readTurn(i, message)
	}
	return converters[f](turns)
}

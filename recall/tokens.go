package recall

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// Tokenizer names what tokens are counted with: that of OpenAI's models since
// GPT-4o. Other models' counts are near.
const Tokenizer = "o200k_base"

// messageTokens is what a message takes beside its texts: its role, and where it
// begins and ends.
const messageTokens = 4

var codec = sync.OnceValue(func() tokenizer.Codec {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		panic(err) // of a name that is wrong
	}
	return codec
})

// tokensIn counts the tokens of texts, each on its own.
func tokensIn(texts ...string) (int, error) {
	total := 0
	for _, text := range texts {
		tokens, err := codec().Count(text)
		if err != nil {
			return 0, err
		}
		total += tokens
	}
	return total, nil
}

// tokensOf counts the tokens of a message: of its texts, and of the names, inputs
// and outputs of its tool calls. Reasoning and files count nothing.
func tokensOf(message Message) (int, error) {
	tokens, err := codec().Count(spoken(message.Content))
	return tokens + messageTokens, err
}

// spoken gives what of a message a model reads, as one text.
func spoken(content json.RawMessage) string {
	read := members(content)
	said := texts(read)
	for _, part := range objects(read["parts"]) {
		said = append(said, calls(part)...)
		said = append(said, calls(members(part["toolInvocation"]))...)
	}
	return strings.Join(said, "\n")
}

// calls gives the parts of a tool call, in any of the forms it has had.
func calls(call map[string]json.RawMessage) []string {
	if _, ok := jsonText(call["toolCallId"]); !ok {
		return nil
	}
	var said []string
	for _, name := range []string{"toolName", "args", "input", "result", "output", "errorText"} {
		if value := call[name]; value != nil {
			said = append(said, string(value))
		}
	}
	return said
}

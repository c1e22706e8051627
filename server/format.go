package server

import (
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

// format reads the format of the messages in the answer; empty for the one that
// they are stored in.
func (q query) format() format.Format { return q.faults.checkFormat("format", q.key("format")) }

// formatOr reads the format of a body; that of the query where there is none.
func (o object) formatOr(ofQuery format.Format) format.Format {
	if !o.has("format") {
		return ofQuery
	}
	if ofQuery != "" {
		o.fault("format", "given in the query string too")
	}
	return o.faults.checkFormat(o.field("format"), o.key("format"))
}

func (f *faults) checkFormat(path, name string) format.Format {
	named := format.Format(name)
	if name != "" && !named.Known() {
		f.add(path, "want aisdk-v5, aisdk-v4, openai or anthropic")
	}
	return named
}

// appendMessages appends messages in a format, or each as it is stored where
// there is none.
func appendMessages(
	b []byte, messages []recall.Message, f format.Format, appendStored func([]byte, recall.Message) []byte,
) []byte {
	if f == "" {
		return appendArray(b, messages, appendStored)
	}
	return appendArray(b, format.Convert(f, messages), func(b []byte, m format.Message) []byte {
		b = append(b, m.JSON...)
		if explanation := messages[m.Of].Explain; explanation != nil && f.ForUI() {
			b = appendExplanation(append(b[:len(b)-1], `,"explain":`...), *explanation)
			b = append(b, '}')
		}
		return b
	})
}

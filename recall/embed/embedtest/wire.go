package embedtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// request is the body of a call.
type request struct {
	Model      string `json:"model"`
	Input      input  `json:"input"`
	Dimensions int    `json:"dimensions"`
}

// input is a string or an array of them.
type input []string

func (i *input) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) {
		*i = make(input, 1)
		return json.Unmarshal(data, &(*i)[0])
	}
	return json.Unmarshal(data, (*[]string)(i))
}

// item is one vector of an answer. Its values are numbers, or raw.
type item struct {
	Index     any // left out when nil
	Embedding []any
}

// raw is written as it stands, JSON or not.
type raw string

// writeItems writes an answer by hand, since encoding/json refuses to write
// what a failure wants written.
func writeItems(w http.ResponseWriter, all []item) {
	var body strings.Builder
	body.WriteString(`{"object":"list","model":"stub","usage":{"prompt_tokens":1,"total_tokens":1},"data":[`)
	for i, one := range all {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`{"object":"embedding",`)
		if one.Index != nil {
			_, _ = fmt.Fprintf(&body, `"index":%v,`, one.Index)
		}
		body.WriteString(`"embedding":[`)
		for j, value := range one.Embedding {
			if j > 0 {
				body.WriteByte(',')
			}
			_, _ = fmt.Fprint(&body, value)
		}
		body.WriteString(`]}`)
	}
	body.WriteString(`]}`)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body.String()))
}

// writeError writes an error as OpenAI does. Its message quotes a key and a
// text, as some services' do, so that tests can see that nothing repeats it.
func writeError(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"message":"SECRET-KEY may not embed SECRET-TEXT","type":"invalid_request_error","code":"%d"}}`, status)
}

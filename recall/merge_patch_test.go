package recall

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The examples of RFC 7396, appendix A.
func TestMergePatchIsThatOfTheRFC(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ document, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		// Beyond it: bytes and places stay.
		{`{"z":1.0,"a":1e2,"é\"":"\u00e9"}`, `{"a":2.50,"y":{"n":null}}`, `{"z":1.0,"a":2.50,"é\"":"\u00e9","y":{}}`},
		{``, `{"a":1}`, `{"a":1}`},
	} {
		require.Equal(t, test.want, string(mergePatch(json.RawMessage(test.document), json.RawMessage(test.patch))), "%s by %s", test.document, test.patch)
	}
}

func TestMergePatchIsThatOfTheNaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		document, patch := drawJSON(t, 3), drawJSON(t, 3)
		encode := func(value any) []byte {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			return encoded
		}
		require.JSONEq(t, string(encode(naivePatch(document, patch))), string(mergePatch(encode(document), encode(patch))))
	})
}

// naivePatch is the RFC's own text.
func naivePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if object, ok := target.(map[string]any); ok {
		for name, value := range object {
			merged[name] = value
		}
	}
	for name, value := range changes {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = naivePatch(merged[name], value)
		}
	}
	return merged
}

func drawJSON(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
		return rapid.SampledFrom([]any{nil, 1, "x", true, []any{}, []any{nil, 1}}).Draw(t, "value")
	}
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}),
		rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }), 0, 3).Draw(t, "object")
}

package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

func TestCheckAdmits(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`{}`, ` [ ] `, `""`, `null`, `true`, `0`, `-1.5e3`, `1e308`, `5e-324`, `0e324`, `0.000`,
		`{"a":{"b":[1,"2",null]}}`, `{"a":1,"A":2}`, `{"":1}`,
		`"\ud83d\ude00"`, `"😀"`, `"\\u0000"`, `"\\\\ud800"`, `"\u0001"`, `"é"`, `"é"`,
		strings.Repeat("1", strictjson.MaxDigits), "\r\n\t 1 \r\n\t",
	} {
		if err := strictjson.Check([]byte(value), 3); err != nil {
			t.Errorf("Check(%q): %v", value, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	const malformed, unstorable = false, true
	for _, test := range []struct {
		value      string
		field      string
		unstorable bool
	}{
		{``, "", malformed},
		{` `, "", malformed},
		{`{bad`, "", malformed},
		{`{"a":`, "a", malformed},
		{`{"a":[1,]}`, "a", malformed},
		{`{"a":1}{"a":1}`, "", malformed},
		{`1 2`, "", malformed},
		{`{} x`, "", malformed},
		{`01`, "", malformed},
		{`0e325`, "", malformed},
		{`0e-325`, "", malformed},
		{`0e99999999999`, "", malformed},
		{`[0e-20000]`, "0", malformed},
		{`+1`, "", malformed},
		{`NaN`, "", malformed},
		{"\"\x00\"", "", malformed},
		{"[\"\xff\"]", "0", malformed},
		{"{\"\xff\":1}", "\uFFFD", malformed},
		{`{"a":{"b":1,"b":2}}`, "a.b", malformed},
		{`{"a":1,"\u0061":2}`, "a", malformed},
		{`{"a":[{"b":[]}]}`, "a.0.b", malformed},
		{`{"n":1e309}`, "n", malformed},
		{`{"n":1e130000}`, "n", malformed},
		{`[0,-1e400]`, "1", malformed},
		{`[1e-400]`, "0", malformed},
		{strings.Repeat("1", strictjson.MaxDigits+1), "", malformed},
		{`"\u0000"`, "", unstorable},
		{`{"messages":[{"content":"a\u0000b"}]}`, "messages.0.content", unstorable},
		{`{"a\u0000":1}`, "a\x00", unstorable},
		{`["\ud800"]`, "0", unstorable},
		{`["\udc00"]`, "0", unstorable},
		{`["\ude00\ud83d"]`, "0", unstorable},
		{`["\ud83d\ud83d\ude00"]`, "0", unstorable},
		{`["\ud83dxxxxxx"]`, "0", unstorable},
		{`{"\uD800":1}`, "\uFFFD", unstorable},
	} {
		err := strictjson.Check([]byte(test.value), 3)
		var fault *strictjson.Error
		if !errors.As(err, &fault) {
			t.Errorf("Check(%q) = %v, want an *Error", test.value, err)
			continue
		}
		if fault.Field != test.field || fault.Unstorable != test.unstorable {
			t.Errorf("Check(%q) = %+v, want field %q, unstorable %v", test.value, fault, test.field, test.unstorable)
		}
	}
}

func TestCheckBoundsDepth(t *testing.T) {
	t.Parallel()
	nested := func(depth int) []byte {
		return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	}
	if err := strictjson.Check(nested(64), 64); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for _, depth := range []int{65, 100_000} {
		if err := strictjson.Check(nested(depth), 64); err == nil {
			t.Errorf("depth %d passed", depth)
		}
	}
}

func TestErrorBoundsThePath(t *testing.T) {
	t.Parallel()
	value := `{"` + strings.Repeat("é", 10_000) + `":1e999}`
	err := strictjson.Check([]byte(value), 4)
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("Check = %.40q..., want a short error", err)
	}
}

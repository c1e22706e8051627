package strictjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

func TestMembersKeepsOrderAndBytes(t *testing.T) {
	t.Parallel()
	value := ` { "b" : {"x":"}\"]"} , "a\u0062":[1, 2] ,"c":1.50 , "d":null,"e":"" } `
	var got []string
	for name, raw := range strictjson.Members([]byte(value)) {
		got = append(got, name, string(raw))
	}
	want := []string{"b", `{"x":"}\"]"}`, "ab", `[1, 2]`, "c", "1.50", "d", "null", "e", `""`}
	if !slices.Equal(got, want) {
		t.Errorf("Members = %q, want %q", got, want)
	}
}

func TestElementsKeepsOrderAndBytes(t *testing.T) {
	t.Parallel()
	var got []string
	for raw := range strictjson.Elements([]byte(` [ 1 ,[2, [3]],{"a":[]}, "," ,true] `)) {
		got = append(got, string(raw))
	}
	want := []string{"1", "[2, [3]]", `{"a":[]}`, `","`, "true"}
	if !slices.Equal(got, want) {
		t.Errorf("Elements = %q, want %q", got, want)
	}
}

// Whatever Check admits, encoding/json reads the same way as the splitters.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,{"b":"\ud83d\ude00"}],"c":null}`, `[[],{},"",0,-1e5,true]`, `"\u0000"`, ` 1`, `{"a":1,"a":2}`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		err := strictjson.Check(value, 16)
		if !bytes.Equal(before, value) {
			t.Fatal("Check changed its input")
		}
		if err != nil {
			return
		}
		var want any
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatalf("Check admits what encoding/json refuses: %v", err)
		}
		if got := rebuild(t, value); !reflect.DeepEqual(got, want) {
			t.Fatalf("split %q into %#v, want %#v", value, got, want)
		}
	})
}

// rebuild decodes value through Members, Elements and Text.
func rebuild(t *testing.T, value []byte) any {
	t.Helper()
	if text, ok := strictjson.Text(value); ok {
		return text
	}
	switch bytes.TrimLeft(value, " \t\r\n")[0] {
	case '{':
		object := map[string]any{}
		for name, raw := range strictjson.Members(value) {
			object[name] = rebuild(t, raw)
		}
		return object
	case '[':
		array := []any{}
		for raw := range strictjson.Elements(value) {
			array = append(array, rebuild(t, raw))
		}
		return array
	}
	var scalar any
	if err := json.Unmarshal(value, &scalar); err != nil {
		t.Fatal(err)
	}
	return scalar
}

func BenchmarkCheck(b *testing.B) {
	message := `{"id":"m","role":"user","content":{"format":2,"parts":[{"type":"text","text":"I want to visit Kyoto in April"}],"metadata":{"n":2}}}`
	value := []byte("[" + message + string(bytes.Repeat([]byte(","+message), 999)) + "]")
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if err := strictjson.Check(value, 64); err != nil {
			b.Fatal(err)
		}
	}
}

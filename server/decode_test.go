package server

import (
	"testing"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/strictjson"
)

func TestParseDateIsStrict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-03-01":                     `"2026-03-01T00:00:00.000Z"`,
		"2024-02-29":                     `"2024-02-29T00:00:00.000Z"`,
		"2026-03-01T10:00:00Z":           `"2026-03-01T10:00:00.000Z"`,
		"2026-03-01T10:00:00.5+02:00":    `"2026-03-01T08:00:00.500Z"`,
		"2026-03-01T10:00:00.123456789Z": `"2026-03-01T10:00:00.123Z"`,
		"9999-12-31T23:59:59.999Z":       `"9999-12-31T23:59:59.999Z"`,
	} {
		date, ok := parseDate(text)
		if got := string(appendTime(nil, date)); !ok || got != want {
			t.Errorf("parseDate(%q) = %s, %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "yesterday", "2026", "2026-03", "2026-3-1", "2026-02-30", "2023-02-29", "2026-03-01T10:00", "2026-03-01T10:00:00",
		"2026-03-01 10:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T10:00:60Z", "2026-03-01T1:00:00Z", "2026-03-01T10:00:00,5Z",
		"2026-03-01T10:00:00+25:00", "2026-03-01T10:00:00+0200", "0000-12-31", "0001-01-01T00:00:00+01:00",
		"9999-12-31T23:59:59-01:00", "10000-01-01", "+2026-03-01", "-2026-03-01", "1772359200000", " 2026-03-01",
	} {
		if date, ok := parseDate(text); ok {
			t.Errorf("parseDate(%q) = %v, want a refusal", text, date)
		}
	}
}

// Whatever JSON comes, the readers of bodies come to an end and give either
// faults or a request within the ranges that they promise.
func FuzzReadBodies(f *testing.F) {
	f.Add([]byte(`{"threadId":"t","perPage":5,"page":0,"filter":{"metadata":{"a":1},"dateRange":{"start":"2026-01-01"}},"include":[{"id":"m"}]}`))
	f.Add([]byte(`{"messages":[{"id":"m","role":"user","content":{"parts":[]},"createdAt":"2026-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"messageIds":["a",{"id":"b"}],"threadConfig":{"lastMessages":false,"semanticRecall":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if strictjson.Check(text, 16) != nil {
			return
		}
		faults := &faults{text: invalidBody}
		body := faults.readObject("", text)
		request := readRecallBody(body)
		if faults.err() == nil {
			if request.PerPage != nil && *request.PerPage < recall.All {
				t.Errorf("page size %d", *request.PerPage)
			}
			if request.Page != nil && *request.Page < 0 {
				t.Errorf("page %d", *request.Page)
			}
		}
		for _, o := range body.objects("messages") {
			readNewMessage(o)
		}
		readMessageIDs(body)
		if strictjson.Check(appendError(nil, "x", faults.malformed), 16) != nil {
			t.Errorf("the faults %q do not make a body", faults.malformed)
		}
	})
}

package server_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// Small as they are sent, and large for who takes them at their word. Not parallel:
// what other tests allocate would count.
func TestABombCostsNoMoreThanTheBodyLimitAllows(t *testing.T) {
	const large = 32 << 20
	bombs := map[string]struct{ body, encoding string }{
		"gzip":          {zipped(t, `{"a":"`+strings.Repeat("0", large)+`"}`), "gzip"},
		"gzip of gzip":  {zipped(t, zipped(t, `{"a":"`+strings.Repeat("0", large)+`"}`)), "gzip"},
		"nested arrays": {`{"a":` + strings.Repeat("[", bodyLimit-10), ""},
		"nested, gzip":  {zipped(t, strings.Repeat(`{"a":`, large/5)), "gzip"},
		"huge numbers":  {`{"a":[` + strings.Repeat("1e130000,", bodyLimit/10) + `1]}`, ""},
		"many members":  {`{` + strings.Repeat(`"a":1,`, bodyLimit/7) + `"b":1}`, ""},
		"many escapes":  {`{"a":"` + strings.Repeat(`\u0000`, bodyLimit/7) + `"}`, ""},
	}
	e := detached(small())
	eachRoute(e, "thread", func(method, path string) {
		if !takesBody(method) {
			return
		}
		for name, bomb := range bombs {
			if len(bomb.body) > bodyLimit {
				t.Fatalf("%s: has %d bytes: the limit alone would refuse it", name, len(bomb.body))
			}
			r := request(method, path, bomb.body)
			r.Header.Set(echo.HeaderContentEncoding, bomb.encoding)
			recorder := discarded{header: http.Header{}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			e.ServeHTTP(&recorder, r)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*bodyLimit {
				t.Errorf("%s %s, %s: takes %d bytes of memory", method, path, name, used)
			}
			if recorder.status < 400 || recorder.status >= 500 {
				t.Errorf("%s %s, %s: %d, want a refusal", method, path, name, recorder.status)
			}
		}
	})
}

// discarded is a client that keeps the status alone.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) WriteHeader(status int)         { d.status = status }
func (d *discarded) Write(part []byte) (int, error) { return len(part), nil }

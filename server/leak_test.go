package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if leaked := heard.leaked(); len(leaked) > 0 {
			fmt.Println("the log of the tests has what callers wrote:", strings.Join(leaked, "\n"))
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// heard is what all servers of the tests logged, and what they were told that no log
// may have.
var heard = &overheard{said: map[string]bool{}, secrets: map[string]bool{}}

// overheard is the log of servers that keeps what could have been written by others.
type overheard struct {
	mu      sync.Mutex
	said    map[string]bool
	secrets map[string]bool
}

// Enabled takes all records.
func (*overheard) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is not used by the server.
func (*overheard) WithAttrs([]slog.Attr) slog.Handler {
	panic("attributes of a logger are not overheard")
}

// WithGroup is not used by the server.
func (*overheard) WithGroup(string) slog.Handler { panic("groups of a logger are not overheard") }

// Handle keeps the record's text and the values of its attributes; numbers tell
// nothing.
func (o *overheard) Handle(_ context.Context, record slog.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said[record.Message] = true
	record.Attrs(func(attr slog.Attr) bool {
		if kind := attr.Value.Kind(); attr.Key != "request_id" && (kind == slog.KindString || kind == slog.KindAny) {
			o.said[attr.Value.String()] = true
		}
		return true
	})
	return nil
}

// told notes the texts and vectors of a request, and its credentials.
func (o *overheard) told(r *http.Request, body []byte) {
	var value any
	_ = json.Unmarshal(body, &value) // what is not JSON tells nothing
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, credentials := range r.Header.Values(echo.HeaderAuthorization) {
		_, secret, _ := strings.Cut(credentials, " ")
		o.keep(secret)
	}
	for _, values := range r.URL.Query() {
		for _, text := range values {
			o.keepText(text)
		}
	}
	o.keepTexts(value)
}

// keepTexts keeps all texts of a value but names of members.
func (o *overheard) keepTexts(value any) {
	switch value := value.(type) {
	case string:
		o.keepText(value)
	case []any:
		for _, item := range value {
			o.keepTexts(item)
		}
	case map[string]any:
		for _, member := range value {
			o.keepTexts(member)
		}
	}
}

// keepText keeps what somebody wrote: a word alone may be the server's as well.
func (o *overheard) keepText(text string) {
	if strings.ContainsAny(strings.TrimSpace(text), " \n") {
		o.keep(text)
	}
}

func (o *overheard) keep(secret string) {
	if len(secret) > 6 {
		o.secrets[secret] = true
	}
}

// leaked gives what was told and is in the log.
func (o *overheard) leaked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all strings.Builder
	for said := range o.said {
		all.WriteString(said + "\n")
	}
	log := all.String()
	var leaked []string
	for secret := range o.secrets {
		if strings.Contains(log, secret) {
			leaked = append(leaked, secret)
		}
	}
	return leaked
}

func TestWhatIsToldIsHeardOfWhereItIsLogged(t *testing.T) {
	t.Parallel()
	o := &overheard{said: map[string]bool{}, secrets: map[string]bool{}}
	r := request(http.MethodPost, "/?q=a+question", "")
	r.Header.Set(echo.HeaderAuthorization, "Bearer pgr_secret")
	o.told(r, []byte(`{"messages":[{"content":"my name is Ada"}]}`))
	log := slog.New(o)
	log.Info("request", slog.Int("status", 200), slog.Any("error", fmt.Errorf("nothing of it")))
	if leaked := o.leaked(); len(leaked) > 0 {
		t.Errorf("leaked %q, want nothing", leaked)
	}
	log.Info("request", slog.Any("error", fmt.Errorf(`near "my name is Ada"`)), slog.String("path", "/?q=a question"), slog.String("key", "pgr_secret"))
	if leaked := o.leaked(); len(leaked) != 3 {
		t.Errorf("leaked %q, want all three", leaked)
	}
}

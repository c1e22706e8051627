package service

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// BoundedReplies is a transport whose replies end with an error after so many
// bytes, since the client reads a reply whole.
type BoundedReplies struct {
	Next  http.RoundTripper
	Bytes int64
}

// RoundTrip makes a request.
func (t BoundedReplies) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, t.Bytes)
	}
	return response, err
}

// Check checks where a service is and its key. kind names it in the error, which
// shows neither: they may hold a password.
func Check(kind, base, key string) error {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return fmt.Errorf("the %s URL is not of the form http://host:port/v1 or https://host/v1", kind)
	}
	if parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("the %s URL has a query or a fragment", kind)
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return fmt.Errorf("the %s key has control characters; a line break at its end?", kind)
	}
	return nil
}

package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

const (
	// bodyField names the body where no field of it can be named.
	bodyField = "body"
	// envelopeDepth is how deep in a body the deepest value lies that has the
	// whole of Config.JSONDepth to itself: the content of a message.
	envelopeDepth = 3
	// firstBodyBytes is what is set aside for a body before any of it has come.
	firstBodyBytes = 64 << 10
)

func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// readBody gives the request's body as one JSON object, its syntax checked.
func (a api) readBody(c echo.Context) (object, *faults, error) {
	text, err := a.readText(c)
	if err != nil {
		return object{}, nil, err
	}
	f := &faults{text: invalidBody}
	if !f.checkJSON("", text, a.config.JSONDepth+envelopeDepth) {
		nameBody(f)
		return object{}, nil, f.err()
	}
	body := f.readObject("", text)
	nameBody(f)
	err = f.err()
	return body, f, err
}

// nameBody names faults of the body as a whole.
func nameBody(f *faults) {
	for i := range f.malformed {
		if f.malformed[i].Field == "" {
			f.malformed[i].Field = bodyField
		}
	}
	for i := range f.unstorable {
		if f.unstorable[i].Field == "" {
			f.unstorable[i].Field = bodyField
		}
	}
}

// readText gives the body's bytes, inflated, within the limit.
func (a api) readText(c echo.Context) ([]byte, error) {
	if err := checkMediaType(c.Request().Header.Get(echo.HeaderContentType)); err != nil {
		return nil, err
	}
	// The limit must see the ResponseWriter of net/http, to close the connection
	// rather than wait for the rest of the body.
	sent := http.MaxBytesReader(c.Response().Writer, c.Request().Body, a.config.BodyBytes)
	var text bytes.Buffer
	text.Grow(int(min(max(c.Request().ContentLength, 0), firstBodyBytes)) + bytes.MinRead)
	var err error
	switch encoding := c.Request().Header.Get(echo.HeaderContentEncoding); strings.ToLower(encoding) {
	case "", "identity":
		_, err = text.ReadFrom(sent)
	case "gzip":
		err = a.inflate(&text, sent)
	default:
		return nil, &refusal{status: http.StatusUnsupportedMediaType, text: "Content-Encoding must be gzip or identity"}
	}
	if err != nil {
		return nil, bodyError(err)
	}
	return text.Bytes(), nil
}

func checkMediaType(contentType string) error {
	mediaType, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	if err != nil || mediaType != echo.MIMEApplicationJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return &refusal{status: http.StatusUnsupportedMediaType, text: "Content-Type must be application/json in UTF-8"}
	}
	return nil
}

func (a api) inflate(text *bytes.Buffer, sent io.Reader) error {
	inflated, err := gzip.NewReader(sent)
	if err != nil {
		return err
	}
	_, err = text.ReadFrom(io.LimitReader(inflated, a.config.BodyBytes+1))
	if err == nil && int64(text.Len()) > a.config.BodyBytes {
		return &http.MaxBytesError{Limit: a.config.BodyBytes}
	}
	return err
}

func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &refusal{status: http.StatusRequestEntityTooLarge, text: "Request body too large"}
	}
	f := faults{text: invalidBody}
	f.add(bodyField, "cannot be read")
	return f.err()
}

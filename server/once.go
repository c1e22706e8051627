package server

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

const (
	headerKey = "Idempotency-Key"
	// headerReplayed says that an answer is that of an earlier request.
	headerReplayed = "Idempotent-Replayed"
	maxKeyBytes    = 255
)

// once makes a route take Idempotency-Key: its handler runs in one transaction, with
// which the answer is kept, and is not run again for the same request.
func once(handle handler) handler { return keyed(handle, (*recall.Memory).Once) }

// onceRead is once for a route that only reads, which may take its time.
func onceRead(handle handler) handler { return keyed(handle, (*recall.Memory).OnceRead) }

func keyed(
	handle handler,
	once func(*recall.Memory, context.Context, recall.Key, func(*recall.Memory) (recall.Answer, error)) (recall.Answer, error),
) handler {
	return func(a api, c echo.Context) error {
		name, err := readKey(c)
		if err != nil {
			return err
		}
		if name == "" {
			return handle(a, c)
		}
		// Before a connection is taken: the client may be slow.
		text, err := a.readText(c)
		if err != nil {
			return err
		}
		r := c.Request()
		r.Header.Del(echo.HeaderContentEncoding)
		key := recall.Key{Name: name, Target: r.Method + " " + r.URL.RequestURI(), Input: text}
		if id, err := pathID(c, threadIDParam); err == nil { // else there is none, or the handler refuses it
			key.ThreadID = id
		}
		answer, err := once(a.memory, r.Context(), key, func(memory *recall.Memory) (recall.Answer, error) {
			r.Body = io.NopCloser(bytes.NewReader(text))
			return answerOf(a.with(memory), c, handle)
		})
		if err != nil {
			return err
		}
		return sendAnswer(c, answer)
	}
}

// readKey gives the request's key; empty without one.
func readKey(c echo.Context) (string, error) {
	values := c.Request().Header.Values(headerKey)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > maxKeyBytes || !isPrintable(values[0]) {
		return "", &refusal{status: http.StatusBadRequest, text: invalidHeaders, issues: []recall.Issue{
			{Field: headerKey, Message: "want 1 to 255 printable ASCII characters, once"},
		}}
	}
	return values[0], nil
}

// answerOf runs a handler and gives its answer instead of sending it.
func answerOf(a api, c echo.Context, handle handler) (recall.Answer, error) {
	client := c.Response()
	defer c.SetResponse(client)
	var kept recorder
	c.SetResponse(echo.NewResponse(&kept, c.Echo()))
	if err := handle(a, c); err != nil {
		return recall.Answer{}, err
	}
	header := kept.Header()
	return recall.Answer{
		Status: kept.status, ETag: header.Get(headerETag), Body: kept.body.Bytes(), Replayed: header.Get(headerReplayed) != "",
	}, nil
}

// sendAnswer sends an answer to the client.
func sendAnswer(c echo.Context, answer recall.Answer) error {
	header := c.Response().Header()
	if answer.ETag != "" {
		header.Set(headerETag, answer.ETag)
	}
	if answer.Replayed {
		header.Set(headerReplayed, "true")
	}
	return c.JSONBlob(answer.Status, answer.Body)
}

// recorder is a client that keeps its answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header gives the header to fill in.
func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write keeps a part of the body.
func (r *recorder) Write(part []byte) (int, error) { return r.body.Write(part) }

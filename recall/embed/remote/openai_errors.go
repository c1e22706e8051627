package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pgrecall/pgrecall/recall/embed"
)

// requestError says what a failed attempt means. The client's own error stays
// out of it: it holds the request, with the key and the texts; and so does the
// service's message, which may quote them.
func requestError(ctx context.Context, err error, response *http.Response, timeout time.Duration) error {
	var tooLarge *http.MaxBytesError
	var transport *url.Error
	switch {
	case errors.As(err, &tooLarge):
		return embed.ReplyErrorf("more than %d bytes", tooLarge.Limit)
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		return statusError(response)
	case ctx.Err() != nil:
		return &embed.Error{Reason: embed.ErrUnavailable, Detail: fmt.Sprintf("no answer within %s", timeout)}
	case errors.As(err, &transport):
		return &embed.Error{Reason: embed.ErrUnavailable, Detail: transport.Err.Error()} // "dial tcp ...: connection refused"
	}
	return &embed.Error{Reason: embed.ErrUnavailable, Detail: "the connection broke"}
}

func statusError(response *http.Response) *embed.Error {
	return &embed.Error{
		Reason:     statusReason(response.StatusCode),
		Detail:     fmt.Sprintf("status %d", response.StatusCode),
		Status:     response.StatusCode,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

func statusReason(status int) error {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return embed.ErrUnavailable
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return embed.ErrRejected
	}
	if status >= http.StatusInternalServerError {
		return embed.ErrUnavailable
	}
	return embed.ErrSettings
}

// maxRetryAfter bounds what a service can ask for.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date.
// 0 to maxRetryAfter; 0 when there is none or it makes no sense.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), maxRetryAfter))
}

// maxReplyBytes bounds a reply: 2,048 vectors of 1,536 numbers take 64 MB.
const maxReplyBytes = 128 << 20

// boundedReplies is a transport whose replies end with an error after
// maxReplyBytes, since the client reads a reply whole.
type boundedReplies struct{ next http.RoundTripper }

func (t boundedReplies) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxReplyBytes)
	}
	return response, err
}

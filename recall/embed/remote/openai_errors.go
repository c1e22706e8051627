package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/service"
)

// reasons gives an embedder's reasons for those of any service.
var reasons = map[error]error{
	service.ErrUnavailable: embed.ErrUnavailable,
	service.ErrRejected:    embed.ErrRejected,
	service.ErrSettings:    embed.ErrSettings,
	service.ErrReply:       embed.ErrReply,
}

// requestError says what a failed attempt means.
func requestError(ctx context.Context, err error, response *http.Response, timeout time.Duration) error {
	failure := service.ErrorOf(ctx, err, response, timeout)
	return &embed.Error{
		Reason: reasons[failure.Reason], Detail: failure.Detail, Status: failure.Status, RetryAfter: failure.RetryAfter,
	}
}

// maxReplyBytes bounds a reply: 2,048 vectors of 1,536 numbers take 64 MB.
const maxReplyBytes = 128 << 20

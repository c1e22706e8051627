package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRetryAfterIsReadAsSecondsOrADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"0":                             0,
		"-1":                            0,
		"NaN":                           0,
		"3":                             3 * time.Second,
		"0.5":                           500 * time.Millisecond,
		"1e300":                         time.Hour,
		"Inf":                           time.Hour,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:04:00 GMT": 0,
		"Sat, 03 Jan 2026 03:04:05 GMT": time.Hour,
	} {
		assert.Equal(t, want, retryAfter(header, now), "%q", header)
	}
}

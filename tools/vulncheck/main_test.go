package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyWhatIsCalledIsReached(t *testing.T) {
	t.Parallel()
	found, err := reached(strings.NewReader(`
		{"config": {"scanner_name": "govulncheck"}}
		{"osv": {"id": "GO-1", "summary": "one"}}
		{"osv": {"id": "GO-2", "summary": "two"}}
		{"finding": {"osv": "GO-1", "fixed_version": "v1.2.0", "trace": [{"module": "m", "version": "v1.1.0"}]}}
		{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "m", "version": "v1.1.0", "package": "m/p"}]}}
		{"finding": {"osv": "GO-1", "trace": [{"module": "m", "version": "v1.1.0", "function": "Do"}]}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]vulnerability{
		"GO-1": {module: "m", version: "v1.1.0", fixed: "no version", summary: "one"},
	}, found)

	_, err = reached(strings.NewReader(`{"osv": `))
	require.Error(t, err, "output cut short")
}

package main

import (
	"os"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	parser, err := kong.New(&commands{}, defaults())
	require.NoError(t, err)
	require.NotEmpty(t, parser.Model.Children)
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && len(flag.Envs) > 0 {
			require.Contains(t, string(text), "| `"+flag.Envs[0]+"` | `--"+flag.Name+"` |")
		}
		return next(nil)
	})
}

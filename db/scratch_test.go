package db

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnotherDatabaseOfTheSameServerIsNamed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@h:1/app?sslmode=disable": "postgres://u:p@h:1/other?sslmode=disable",
		"postgresql://h":                         "postgresql://h/other",
		"host=h dbname=app":                      "host=h dbname=app dbname=other",
	} {
		got, err := withDatabase(address, "other")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

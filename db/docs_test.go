package db_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// sqlExample is a block of SQL in docs/sql.md with the rows shown below it.
var sqlExample = regexp.MustCompile("(?s)```sql\n(.*?)```\n(?:```\n(.*?)```\n)?")

func TestTheExamplesOfTheDocsGiveWhatTheyShow(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	tellExamples(t, recall.New(dbtest.Open(t, address), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})))
	conn := connect(t, address)
	app := createRole(t, conn, address, "app")
	text, err := os.ReadFile("../docs/sql.md")
	require.NoError(t, err)
	for _, example := range sqlExample.FindAllStringSubmatch(string(text), -1) {
		query, shown := example[1], example[2]
		if shown == "" {
			exec(t, conn, strings.ReplaceAll(query, " app;", " "+app.name+";"))
			continue
		}
		assert.Equal(t, cells(shown), answer(t, conn, query), query)
	}
	for _, name := range public {
		_, name, _ := strings.Cut(name, " ")
		assert.Contains(t, string(text), "FROM recall."+name, "has no example")
	}
}

// tellExamples saves what the examples speak of.
func tellExamples(t *testing.T, memory *recall.Memory) {
	_, err := memory.CreateThread(t.Context(), recall.NewThread{ID: "trip", ResourceID: "sam", Title: ptr("Trip to Kyoto")})
	require.NoError(t, err)
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for i, said := range []struct{ id, thread, role, text, metadata string }{
		{"m1", "trip", "user", "I want to see Kyoto in April", "{}"},
		{"m2", "trip", "assistant", "That is cherry blossom season", "{}"},
		{"m3", "trip", "user", "Remind me to pay the deposit", `{"topic":"billing"}`},
		{"g1", "garden", "user", "The tomatoes have yellow leaves", "{}"},
		{"g2", "garden", "assistant", "Water the tomatoes less", "{}"},
	} {
		_, err := memory.SaveMessages(t.Context(), []recall.NewMessage{{
			ID: said.id, ThreadID: said.thread, ResourceID: "sam", Role: said.role, CreatedAt: at.Add(time.Duration(i) * 5 * time.Hour),
			Content: fmt.Appendf(nil, `{"format":2,"parts":[{"type":"text","text":%q}],"metadata":%s}`, said.text, said.metadata),
		}}, true)
		require.NoError(t, err)
	}
}

// cells splits a table as psql shows it.
func cells(shown string) [][]string {
	var rows [][]string
	for line := range strings.Lines(shown) {
		var row []string
		for cell := range strings.SplitSeq(line, "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

// answer gives the names of columns and the rows, as psql writes them.
func answer(t *testing.T, conn *pgx.Conn, query string) [][]string {
	results, err := conn.PgConn().Exec(t.Context(), query).ReadAll()
	require.NoError(t, err, query)
	var header []string
	for _, field := range results[0].FieldDescriptions {
		header = append(header, field.Name)
	}
	rows := [][]string{header}
	for _, values := range results[0].Rows {
		var row []string
		for _, value := range values {
			row = append(row, string(value))
		}
		rows = append(rows, row)
	}
	return rows
}

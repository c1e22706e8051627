package recall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// A program that keeps its conversations in its own database, without a server.
func Example() {
	if err := converse(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func converse(ctx context.Context, databaseURL string) error {
	if _, err := db.Migrate(ctx, databaseURL); err != nil {
		return err
	}
	pool, err := db.Open(ctx, db.Config{URL: databaseURL})
	if err != nil {
		return err
	}
	defer pool.Close()
	memory := recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))

	const createThreads = true
	if _, err := memory.SaveMessages(ctx, []recall.NewMessage{
		{ThreadID: "trip", ResourceID: "sam", Role: "user", Content: json.RawMessage(`"I want to see Kyoto in April"`)},
		{ThreadID: "trip", ResourceID: "sam", Role: "assistant", Content: json.RawMessage(`"That is cherry blossom season"`)},
	}, createThreads); err != nil {
		return err
	}
	result, err := memory.Recall(ctx, recall.Request{ResourceID: "sam", Search: &recall.Search{Question: "When do cherries bloom?"}})
	if err != nil {
		return err
	}
	for _, message := range result.Messages {
		fmt.Println(message.Role+":", message.Text())
	}
	return nil
}

// The example does what it shows.
func TestTheExampleRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, converse(ctx, dbtest.EmptyURL(t)))
}

package recall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// A program that keeps its conversations in its own database, without a server.
func Example() {
	ctx := context.Background()
	url := os.Getenv("DATABASE_URL")
	if _, err := db.Migrate(ctx, url); err != nil {
		log.Fatal(err)
	}
	pool, err := db.Open(ctx, db.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	memory := recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))

	const createThreads = true
	_, err = memory.SaveMessages(ctx, []recall.NewMessage{
		{ThreadID: "trip", ResourceID: "sam", Role: "user", Content: json.RawMessage(`"I want to see Kyoto in April"`)},
		{ThreadID: "trip", ResourceID: "sam", Role: "assistant", Content: json.RawMessage(`"That is cherry blossom season"`)},
	}, createThreads)
	if err != nil {
		log.Fatal(err)
	}
	result, err := memory.Recall(ctx, recall.Request{ResourceID: "sam", Search: &recall.Search{Question: "When do cherries bloom?"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range result.Messages {
		fmt.Println(message.Role+":", message.Text())
	}
}

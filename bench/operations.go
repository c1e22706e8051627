package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/recall/embed"
)

const (
	perPage = 20
	// pagesDeep is how far into the large thread the deep page lies, or half of
	// the thread where that is less.
	pagesDeep   = 500
	matches     = dataset.LargestThread / dataset.RareEvery
	around      = 2 // messages before and after an included one, or a hit
	batchSize   = 20
	recallPath  = "/api/memory/recall"
	resourceID  = "bench"
	insertOwner = `INSERT INTO recall.threads (id, resource_id, created_at, updated_at) VALUES ($1, $2, now(), now())`
)

// operation is one thing that clients do, with the bare SQL beside it.
type operation struct {
	name      string
	http, sql call
	targets   targets
	// small marks the one that the growth of the others is measured by.
	small bool
	// writes marks those that change the data.
	writes bool
	// recall is the share of the nearest messages that a search by meaning gives.
	recall float64
}

// The bare statements: what a careful hand would write for the one purpose.
const (
	sqlPage = `
		SELECT id, role, type, content, created_at
		FROM recall.messages
		WHERE thread_id = $1
		ORDER BY created_at DESC, seq DESC
		LIMIT $2`
	sqlDeepPage = `
		SELECT id, role, type, content, created_at
		FROM recall.messages
		WHERE thread_id = $1 AND (created_at, seq) < ($2, $3)
		ORDER BY created_at DESC, seq DESC
		LIMIT $4`
	sqlFilter = `
		SELECT id, role, type, content, created_at
		FROM recall.messages
		WHERE recall.scope_keys(thread_id, resource_id) @> ARRAY['t' || $1::text]
			AND recall.message_metadata(content) @@ $2::jsonpath
		ORDER BY created_at DESC, seq DESC
		LIMIT $3`
	sqlInclude = `
		SELECT m.id, m.role, m.type, m.content, m.created_at
		FROM recall.messages AS a
		CROSS JOIN LATERAL (
			(SELECT b.* FROM recall.messages AS b
			 WHERE b.thread_id = a.thread_id AND (b.created_at, b.seq) <= (a.created_at, a.seq)
			 ORDER BY b.created_at DESC, b.seq DESC LIMIT $2 + 1)
			UNION ALL
			(SELECT f.* FROM recall.messages AS f
			 WHERE f.thread_id = a.thread_id AND (f.created_at, f.seq) > (a.created_at, a.seq)
			 ORDER BY f.created_at, f.seq LIMIT $2)
		) AS m
		WHERE a.id = $1
		ORDER BY m.created_at, m.seq`
	sqlSave = `
		WITH saved AS (
			INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, type, content, created_at, updated_at)
			SELECT i.id, $1, $2, $3 + i.n, 'user', 'v2', i.content, now(), now()
			FROM unnest($4::text[], $5::jsonb[]) WITH ORDINALITY AS i (id, content, n)
		)
		INSERT INTO recall.embeddings_1 (message_id, chunk, thread_id, resource_id, text_hash, embedding)
		SELECT i.id, 0, $1, $2, '', i.embedding::vector
		FROM unnest($4::text[], $6::text[]) AS i (id, embedding)`
	sqlClone = `
		WITH clone AS (
			INSERT INTO recall.threads (id, resource_id, title, message_count, last_seq, created_at, updated_at)
			SELECT $2, resource_id, title, message_count, last_seq, now(), now() FROM recall.threads WHERE id = $1
			RETURNING id, resource_id
		),
		source AS MATERIALIZED (
			SELECT m.*, recall.new_id() AS new_id FROM recall.messages AS m WHERE m.thread_id = $1
		),
		vectors AS (
			INSERT INTO recall.embeddings_1 (message_id, chunk, thread_id, resource_id, text_hash, embedding)
			SELECT s.new_id, e.chunk, c.id, c.resource_id, e.text_hash, e.embedding
			FROM source AS s
			JOIN recall.embeddings_1 AS e ON e.message_id = s.id
			CROSS JOIN clone AS c
		)
		INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, type, content, created_at, updated_at)
		SELECT s.new_id, c.id, c.resource_id, s.seq, s.role, s.type, s.content, s.created_at, now()
		FROM source AS s
		CROSS JOIN clone AS c
		RETURNING id, role, type, content, created_at`
)

// operations gives all that are measured, those that read first.
func (r *rig) operations(ctx context.Context) ([]operation, error) {
	deep, err := r.deepPage(ctx)
	if err != nil {
		return nil, err
	}
	include, err := r.include(ctx)
	if err != nil {
		return nil, err
	}
	small := r.page(fmt.Sprintf("page of %d, thread of %d", perPage, dataset.ThreadMessages), r.anyThread)
	small.small = true
	large := r.page(fmt.Sprintf("page of %d, thread of %d", perPage, r.shape.LargeThread), largeThread)
	searches, err := r.searches(ctx)
	if err != nil {
		return nil, err
	}
	save, err := r.save(ctx, fmt.Sprintf("save %d", batchSize), resourceID, 5000)
	if err != nil {
		return nil, err
	}
	saveLarge, err := r.save(ctx, fmt.Sprintf("save %d, resource of %d", batchSize, r.shape.LargeResource()), largeResource(), 2000)
	if err != nil {
		return nil, err
	}
	all := append([]operation{r.nothing(), small, large, deep, r.filter(), include}, searches...)
	return append(all, save, saveLarge, r.clone()), nil
}

func (r *rig) anyThread() string { return dataset.ThreadID(1 + anyOf(r.shape.Threads)) }

// anyOf draws a number below n.
func anyOf(n int) int { return rand.IntN(n) } //nolint:gosec // nothing is secret here

func largeThread() string { return dataset.ThreadID(0) }

func largeResource() string { return dataset.ResourceID(0) }

// nothing is what a request costs that does nothing.
func (r *rig) nothing() operation {
	return operation{
		name: "empty request",
		http: func() func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := r.exchange(ctx, http.MethodGet, r.echo.url, nil)
				return err
			}
		},
		sql: r.query(`SELECT 1`, func() []any { return nil }),
	}
}

// recall gives a call of the one route that takes everything.
func (r *rig) recall(body func() map[string]any) call {
	return r.post(recallPath, func() []byte { return encode(body()) })
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of strings and numbers
	}
	return text
}

func (r *rig) page(name string, thread func() string) operation {
	return operation{
		name:    name,
		http:    r.recall(func() map[string]any { return map[string]any{"threadId": thread(), "perPage": perPage} }),
		sql:     r.query(sqlPage, func() []any { return []any{thread(), perPage} }),
		targets: pageTargets,
	}
}

// place is one from which a page goes on.
type place struct {
	cursor    string
	createdAt time.Time
	seq       int64
}

func (r *rig) deepPage(ctx context.Context) (operation, error) {
	depth := min(pagesDeep, r.shape.LargeThread/perPage/2)
	at, err := r.placeAfter(ctx, depth)
	if err != nil {
		return operation{}, err
	}
	return operation{
		name: fmt.Sprintf("page %d deep, by cursor", depth),
		http: r.recall(func() map[string]any {
			return map[string]any{"threadId": largeThread(), "perPage": perPage, "cursor": at.cursor}
		}),
		sql:     r.query(sqlDeepPage, func() []any { return []any{largeThread(), at.createdAt, at.seq, perPage} }),
		targets: pageTargets,
	}, nil
}

// placeAfter walks to the end of a page of the large thread, by its number.
func (r *rig) placeAfter(ctx context.Context, page int) (place, error) {
	body := encode(map[string]any{"threadId": largeThread(), "perPage": perPage, "page": page - 1})
	text, err := r.exchange(ctx, http.MethodPost, r.api.url+recallPath, body)
	if err != nil {
		return place{}, err
	}
	var answer struct {
		NextCursor string
		Messages   []struct{ ID string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return place{}, err
	}
	at := place{cursor: answer.NextCursor}
	const query = `SELECT created_at, seq FROM recall.messages WHERE id = $1`
	err = r.conn.QueryRow(ctx, query, answer.Messages[0].ID).Scan(&at.createdAt, &at.seq)
	return at, err
}

func (r *rig) filter() operation {
	body := map[string]any{
		"threadId": largeThread(), "perPage": matches,
		"filter": map[string]any{"metadata": map[string]any{dataset.FlagKey: dataset.FlagValue}},
	}
	const predicate = `$."` + dataset.FlagKey + `" == "` + dataset.FlagValue + `"`
	return operation{
		name:    fmt.Sprintf("metadata filter, thread of %d", r.shape.LargeThread),
		http:    r.recall(func() map[string]any { return body }),
		sql:     r.query(sqlFilter, func() []any { return []any{largeThread(), predicate, matches} }),
		targets: targets{time: 5 * time.Millisecond, checkRatio: 15, checkGrowth: 15},
	}
}

func (r *rig) include(ctx context.Context) (operation, error) {
	const query = `SELECT id FROM recall.messages WHERE thread_id = $1 AND seq % 97 = 0`
	rows, err := r.conn.Query(ctx, query, largeThread())
	if err != nil {
		return operation{}, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return operation{}, err
	}
	anyID := func() string { return ids[anyOf(len(ids))] }
	return operation{
		name: fmt.Sprintf("include with context %d and %d", around, around),
		http: r.recall(func() map[string]any {
			return map[string]any{"threadId": largeThread(), "include": []any{map[string]any{
				"id": anyID(), "withPreviousMessages": around, "withNextMessages": around,
			}}}
		}),
		sql:     r.query(sqlInclude, func() []any { return []any{anyID(), around} }),
		targets: targets{checkRatio: 8, checkGrowth: 4},
	}, nil
}

// newContent gives the text of a message to save and the content that holds it.
func newContent() (string, map[string]any) {
	text := dataset.Text(anyOf)
	return text, map[string]any{
		"format":   2,
		"parts":    []any{map[string]any{"type": "text", "text": text}},
		"metadata": map[string]any{"channel": "chat"},
	}
}

// save saves into a thread of a resource that is the operation's own, one for each
// side.
func (r *rig) save(ctx context.Context, name, resource string, messagesPerSecond float64) (operation, error) {
	httpThread, sqlThread := newID(), newID()
	for _, thread := range []string{httpThread, sqlThread} {
		if _, err := r.conn.Exec(ctx, insertOwner, thread, resource); err != nil {
			return operation{}, err
		}
	}
	var seq int
	return operation{
		name: name,
		http: r.post("/api/memory/save-messages", func() []byte {
			var messages []any
			for range batchSize {
				_, content := newContent()
				messages = append(messages, map[string]any{
					"id": newID(), "threadId": httpThread, "resourceId": resource, "role": "user", "type": "v2", "content": content,
				})
			}
			return encode(map[string]any{"messages": messages})
		}),
		sql: r.query(sqlSave, func() []any {
			var ids, vectors []string
			var contents [][]byte
			for range batchSize {
				text, content := newContent()
				ids, contents = append(ids, newID()), append(contents, encode(content))
				vectors = append(vectors, vectorOf(text, embed.Document).String())
			}
			seq += batchSize
			return []any{sqlThread, resource, seq - batchSize, ids, contents, vectors}
		}),
		targets: targets{messages: batchSize, messagesPerSecond: messagesPerSecond, checkRatio: 6},
		writes:  true,
	}, nil
}

func (r *rig) clone() operation {
	return operation{
		name: fmt.Sprintf("clone %d", dataset.ThreadMessages),
		http: func() func(context.Context) error {
			thread := r.anyThread()
			return r.post("/api/memory/threads/"+thread+"/clone", func() []byte { return []byte("{}") })()
		},
		sql:     r.query(sqlClone, func() []any { return []any{r.anyThread(), newID()} }),
		targets: targets{time: 10 * time.Millisecond, checkRatio: 5},
		writes:  true,
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

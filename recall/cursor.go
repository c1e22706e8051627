package recall

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// position is a place in the order of messages.
type position struct {
	createdAt time.Time
	threadID  string
	seq       int64
}

// compare orders positions as messages are: negative when p comes first. Position
// 0 of no thread comes before all messages of its time.
func (p position) compare(other position) int {
	return cmp.Or(
		p.createdAt.Compare(other.createdAt),
		strings.Compare(p.threadID, other.threadID),
		cmp.Compare(p.seq, other.seq),
	)
}

// cursor is where a walk goes on: past a position, in a direction. Clients see it
// as an opaque string. It holds no right: what a walk may see is checked anew
// with each request.
type cursor struct {
	Direction Direction `json:"d"`
	// Milliseconds since 1970, as exact as createdAt.
	CreatedAt int64  `json:"t"`
	ThreadID  string `json:"i"`
	Seq       int64  `json:"s"`
}

func (c cursor) position() position {
	return position{createdAt: time.UnixMilli(c.CreatedAt).UTC(), threadID: c.ThreadID, seq: c.Seq}
}

func newCursor(direction Direction, at position) string {
	text, err := json.Marshal(cursor{
		Direction: direction, CreatedAt: at.createdAt.UnixMilli(), ThreadID: at.threadID, Seq: at.seq,
	})
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// cursor reads a cursor of a walk in the given direction. An empty one begins
// the walk: nil.
func (c *checker) cursor(field, value string, direction Direction) *position {
	if value == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(value)
	var read cursor
	if err != nil || json.Unmarshal(text, &read) != nil || read.Seq < 0 || newCursor(read.Direction, read.position()) != value {
		c.fail(field, "is not a cursor of this server")
		return nil
	}
	before := len(c.issues)
	c.id(field, read.ThreadID)
	at := read.position()
	c.time(field, &at.createdAt)
	if read.Direction != direction {
		c.fail(field, "belongs to a walk in the other direction")
	}
	if len(c.issues) > before {
		return nil
	}
	return &at
}

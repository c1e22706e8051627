package embed

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
)

// Limits of [Chunks].
const (
	// ChunkBytes is the most that a chunk holds: about 350 tokens of English.
	// Bytes, since they follow tokens: a letter of English is one byte, four or
	// five of them a token; an ideograph is three bytes and a token.
	ChunkBytes = 1500
	// MaxChunks is the most chunks of one text: some 190 kB of it. What lies
	// behind them is not embedded.
	MaxChunks = 128
)

// minChunkBytes keeps a nonsensical token limit from making confetti.
const minChunkBytes = 64

// Chunks cuts text into the pieces that are embedded one by one. A short text
// is one chunk, as it is; a blank one has none. A longer one is cut into pieces
// of like size at the ends of sentences, else between words, else between
// characters; together they are the text, but for white space at the cuts and
// for what lies behind [MaxChunks] of them. maxTokens is the model's
// [Embedder.MaxTokens].
func Chunks(text string, maxTokens int) []string {
	limit := chunkLimit(maxTokens)
	if len(text) <= limit {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return []string{text}
	}
	var chunks []string
	rest := strings.TrimSpace(text)
	for rest != "" && len(chunks) < MaxChunks {
		size := chunkSize(rest, limit)
		chunks = append(chunks, strings.TrimSpace(rest[:size]))
		rest = strings.TrimSpace(rest[size:])
	}
	return chunks
}

// chunkLimit is the budget of a chunk in bytes. Of a model that says what it
// reads, a chunk takes at most five bytes for two tokens: English needs half
// of that, an ideograph each is what fits.
func chunkLimit(maxTokens int) int {
	if maxTokens <= 0 {
		return ChunkBytes
	}
	return min(ChunkBytes, max(minChunkBytes, min(maxTokens, ChunkBytes)*5/2))
}

// chunkSize gives the bytes of the first chunk of text, 1 to limit.
func chunkSize(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	// Pieces of like size rather than full ones and a crumb at the end.
	pieces := (len(text) + limit - 1) / limit
	return bestCut(text[:runeStart(text, limit)], len(text)/pieces)
}

// runeStart gives the last start of a character at or before position.
func runeStart(text string, position int) int {
	for i := position; i > position-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return position // no UTF-8
}

// bestCut gives the border in window that is nearest to target: the end of a
// sentence where one lies behind the first half of target, else a space, else
// the end of a word of a script that has no spaces, else a border between two
// characters as people see them. Without any, the end of window.
func bestCut(window string, target int) int {
	if cut := nearestCut(window, target, sentences.FromString(window), anySegment); cut > 0 {
		return cut
	}
	if cut := nearestCut(window, target, words.FromString(window), blankSegment); cut > 0 {
		return cut
	}
	if cut := nearestCut(window, target, words.FromString(window), anySegment); cut > 0 {
		return cut
	}
	if cut := nearestCut(window, target, graphemes.FromString(window), anySegment); cut > 0 {
		return cut
	}
	return len(window)
}

// segments are what the iterators of Unicode's text segmentation have in common.
type segments interface {
	Next() bool
	Value() string
}

// nearestCut gives the end, nearest to target and behind half of it, of a
// segment that ends pass: 0 without one. The end of window counts for nothing:
// it need not be a border of the text.
func nearestCut(window string, target int, s segments, ends func(segment string) bool) int {
	nearest, position := 0, 0
	for s.Next() {
		position += len(s.Value())
		if position <= target/2 || position == len(window) || !ends(s.Value()) {
			continue
		}
		if nearest > 0 && distance(position, target) >= distance(nearest, target) {
			break // they only get further away
		}
		nearest = position
	}
	return nearest
}

func anySegment(string) bool           { return true }
func blankSegment(segment string) bool { return strings.TrimSpace(segment) == "" }

func distance(a, b int) int { return max(a-b, b-a) }

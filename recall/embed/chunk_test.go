package embed

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestChunksOfAShortTextAreTheText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", " spaces around \n", strings.Repeat("x", ChunkBytes)} {
		assert.Equal(t, []string{text}, Chunks(text, 0))
	}
}

func TestChunksOfABlankTextAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \t\n", strings.Repeat(" \u3000", ChunkBytes)} {
		assert.Empty(t, Chunks(text, 0))
	}
}

func TestChunksEndWithASentence(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"The ferry to the island leaves at nine, if the wind allows. ",
		"Паром на остров уходит в девять, если позволит ветер! ",
		"我昨天去了北京，天气很好。",
		"東京タワーに行きましたか？",
		"A line without a full stop\n",
	} {
		text := strings.Repeat(sentence, 100)
		chunks := Chunks(text, 0)
		require.Greater(t, len(chunks), 1)
		for _, chunk := range chunks {
			assert.True(t, strings.HasSuffix(chunk, strings.TrimSpace(sentence)), "%q", chunk)
		}
		assert.Equal(t, withoutSpace(text), withoutSpace(strings.Join(chunks, "")))
	}
}

func TestChunksOfALongSentenceEndWithAWord(t *testing.T) {
	t.Parallel()
	for _, chunk := range Chunks(strings.Repeat("harbour ", 1000), 0) {
		assert.True(t, strings.HasPrefix(chunk, "harbour"))
		assert.True(t, strings.HasSuffix(chunk, "harbour"))
	}
}

func TestChunksKeepCharactersWhole(t *testing.T) {
	t.Parallel()
	const family = "👩‍👩‍👧‍👦"
	for _, chunk := range Chunks(strings.Repeat(family, 400), 0) {
		assert.Empty(t, strings.ReplaceAll(chunk, family, ""))
	}
}

func TestChunksAreOfLikeSize(t *testing.T) {
	t.Parallel()
	chunks := Chunks(strings.Repeat("word ", ChunkBytes/5+10), 0)
	require.Len(t, chunks, 2)
	assert.InDelta(t, len(chunks[0]), len(chunks[1]), 20)
}

func TestChunksFollowTheTokenLimit(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 1000)
	for maxTokens, limit := range map[int]int{0: 1500, 1: 64, 256: 640, 512: 1280, 8192: 1500} {
		chunks := Chunks(text, maxTokens)
		for _, chunk := range chunks {
			assert.LessOrEqual(t, len(chunk), limit)
		}
		assert.GreaterOrEqual(t, len(chunks), len(text)/limit)
	}
}

func TestChunksAreBounded(t *testing.T) {
	t.Parallel()
	chunks := Chunks(strings.Repeat("word ", 1_000_000), 0)
	assert.Len(t, chunks, MaxChunks)
}

func TestChunksLoseNothing(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a-z]{1,10}( [a-z]{1,10}){0,20}[.?!] `),
		rapid.SampledFrom([]string{
			"\n\n", "\r\n", "。", "！", "\u3000", "我昨天去了北京", "สวัสดีชาวโลก", "👩‍👩‍👧‍👦", "Dr. Smith", "3.14", "\xff\xfe", "\x80\x80\x80\x80\x80",
			strings.Repeat("x", 200), strings.Repeat("\u0301", 100), strings.Repeat(" ", 100),
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 60).Draw(t, "parts"), "")
		maxTokens := rapid.IntRange(0, 1000).Draw(t, "max tokens")
		chunks := Chunks(text, maxTokens)
		for _, chunk := range chunks {
			if len(chunk) > chunkLimit(maxTokens) || strings.TrimSpace(chunk) == "" {
				t.Fatalf("a chunk of %d bytes: %q", len(chunk), chunk)
			}
			if utf8.ValidString(text) && !utf8.ValidString(chunk) {
				t.Fatalf("a character cut: %q", chunk)
			}
		}
		whole, joined := withoutSpace(text), withoutSpace(strings.Join(chunks, ""))
		if len(chunks) == MaxChunks && strings.HasPrefix(whole, joined) {
			return
		}
		if whole != joined {
			t.Fatalf("%q became %q", text, chunks)
		}
	})
}

// withoutSpace drops white space and, unlike strings.Map, keeps invalid bytes.
func withoutSpace(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), "")
}

func BenchmarkChunks(b *testing.B) {
	text := strings.Repeat(hundredTokens+"\n", 20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Chunks(text, 0)
	}
}

func FuzzChunks(f *testing.F) {
	f.Add(strings.Repeat("a.1 ", 500), 256)
	f.Fuzz(func(t *testing.T, text string, maxTokens int) {
		for _, chunk := range Chunks(text, maxTokens) {
			require.LessOrEqual(t, len(chunk), chunkLimit(maxTokens))
			require.NotEmpty(t, chunk)
		}
	})
}

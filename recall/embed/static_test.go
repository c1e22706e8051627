package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// golden are the vectors of the reference implementation, model2vec.
type golden struct {
	MaxTokens int `json:"max_tokens"`
	MaxChars  int `json:"max_chars"`
	Cases     []struct {
		Name   string    `json:"name"`
		Text   string    `json:"text"`
		IDs    []int32   `json:"ids"`
		Vector []float64 `json:"vector"`
	} `json:"cases"`
}

func readGolden(t testing.TB) golden {
	t.Helper()
	content, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(content, &g))
	require.Len(t, g.Cases, 98)
	return g
}

func loadModel(t testing.TB) *staticModel {
	t.Helper()
	model, err := loadStatic()
	require.NoError(t, err)
	return model
}

// ids cuts as the reference does, which pgrecall does not: long texts are
// chunked. It counts unknown words before it drops them.
func (g golden) ids(v *vocabulary, text string) []int32 {
	runes := []rune(text)
	all := v.appendIDs(nil, string(runes[:min(len(runes), g.MaxChars)]))
	return known(all[:min(len(all), g.MaxTokens)])
}

func known(ids []int32) []int32 {
	kept := []int32{}
	for _, id := range ids {
		if id != unknownPiece {
			kept = append(kept, id)
		}
	}
	return kept
}

func TestStaticEqualsTheReference(t *testing.T) {
	t.Parallel()
	model, golden := loadModel(t), readGolden(t)
	for _, test := range golden.Cases {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			ids := golden.ids(model.vocabulary, test.Text)
			require.Equal(t, test.IDs, ids)
			vector := make(Vector, staticDimensions)
			found := model.embed(vector, ids, Query)
			require.Equal(t, len(ids) > 0, found)
			if found {
				assert.GreaterOrEqual(t, cosine(test.Vector, vector), .9999)
			}
		})
	}
}

func cosine(a []float64, b Vector) float64 {
	var product, squaresA, squaresB float64
	for i := range a {
		product += a[i] * float64(b[i])
		squaresA += a[i] * a[i]
		squaresB += float64(b[i]) * float64(b[i])
	}
	return product / math.Sqrt(squaresA*squaresB)
}

func length(v Vector) float64 {
	var squares float64
	for _, value := range v {
		squares += float64(value) * float64(value)
	}
	return math.Sqrt(squares)
}

func TestStaticLengths(t *testing.T) {
	t.Parallel()
	const text = "The ferry to the island leaves at nine on Sundays."
	model := loadModel(t)
	_, sum := model.sum(model.vocabulary.appendIDs(nil, text))

	question, err := Static{}.Embed(t.Context(), []string{text}, Query)
	require.NoError(t, err)
	message, err := Static{}.Embed(t.Context(), []string{text}, Document)
	require.NoError(t, err)

	assert.InDelta(t, 1, length(question[0]), 1e-6)
	assert.InDelta(t, float64(sum)/(float64(sum)+150), length(message[0]), 1e-6)
}

func TestStaticPrefersTheLongerOfTwoTextsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	vectors, err := Static{}.Embed(t.Context(), []string{"ferry", "ferry ferry ferry"}, Document)
	require.NoError(t, err)
	assert.Less(t, length(vectors[0]), length(vectors[1]))
}

func TestStaticHasNoVectorWithoutAKnownWord(t *testing.T) {
	t.Parallel()
	texts := []string{"", " \n", "😀🎉", "สวัสดี", "[UNK]", "\xff", "known"}
	for _, kind := range []Kind{Query, Document} {
		vectors, err := Static{}.Embed(t.Context(), texts, kind)
		require.NoError(t, err)
		require.Len(t, vectors, len(texts))
		for i := range texts[:6] {
			assert.Nil(t, vectors[i], "%q", texts[i])
		}
		assert.Len(t, vectors[6], Static{}.Dimensions())
	}
}

func TestStaticEmbedsALongTextWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 5000)
	model := loadModel(t)
	assert.Len(t, model.vocabulary.appendIDs(nil, long), 5000)
}

func TestStaticVectorsDoNotOverlap(t *testing.T) {
	t.Parallel()
	vectors, err := Static{}.Embed(t.Context(), []string{"one", "two"}, Query)
	require.NoError(t, err)
	before := vectors[1][0]
	_ = append(vectors[0], 42) // must not write into its neighbour
	assert.Equal(t, []float32{before}, []float32(vectors[1][:1]))
}

func TestStaticEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Static{}.Embed(ctx, []string{"text"}, Query)
	require.ErrorIs(t, err, ctx.Err())
}

func TestStaticIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	texts := []string{"The quick brown fox", "café naïve", "我昨天去了北京"}
	want, err := Static{}.Embed(t.Context(), texts, Document)
	require.NoError(t, err)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			got, err := Static{}.Embed(t.Context(), texts, Document)
			assert.Equal(t, want, got)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

// The checksums are those of potion/README.md, and the one that the table carries.
func TestStaticFilesAreThoseOfTheOrigin(t *testing.T) {
	t.Parallel()
	for _, file := range []string{tableFile, vocabularyFile} {
		sum := sha256.Sum256([]byte(file))
		assert.Contains(t, StaticNotice(), hex.EncodeToString(sum[:]))
	}
	body := sha256.Sum256([]byte(tableFile[tableHeaderSize:]))
	assert.Equal(t, tableFile[32:64], string(body[:]))
	assert.Contains(t, StaticNotice(), "MIT License")
}

func TestStaticRowsAreUsable(t *testing.T) {
	t.Parallel()
	model := loadModel(t)
	for id, scale := range model.table.scales {
		require.Positive(t, scale, "row %d", id)
		require.False(t, math.IsInf(float64(scale), 0), "row %d", id)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"empty":     "",
		"magic":     "X" + tableFile[1:],
		"version":   tableFile[:8] + "\x02" + tableFile[9:],
		"dims":      tableFile[:16] + "\x01" + tableFile[17:],
		"type":      tableFile[:20] + "\x02" + tableFile[21:],
		"rows":      tableFile[:12] + "\x01" + tableFile[13:],
		"cut short": tableFile[:len(tableFile)-1],
	} {
		_, err := readTable(file)
		require.ErrorIs(t, err, errTable, name)
	}
	for name, file := range map[string]string{
		"missing piece": "[PAD]\n",
		"twice":         "a\na\n",
	} {
		_, err := readVocabulary(file, 2)
		require.ErrorIs(t, err, errVocabulary, name)
	}
}

package embed

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// naive tokenizes as slowly and as plainly as can be, a step after the other
// over slices of runes, to hold the real tokenizer to.
type naive struct{ pieces map[string]int32 }

func newNaive() naive {
	pieces := map[string]int32{}
	for id, piece := range strings.Split(strings.TrimSuffix(vocabularyFile, "\n"), "\n") {
		pieces[piece] = int32(id)
	}
	return naive{pieces: pieces}
}

func (n naive) ids(text string) []int32 {
	ids := []int32{}
	for text != "" {
		before, special, after := n.firstSpecial(text)
		for _, word := range n.words(before) {
			ids = append(ids, n.spell(word)...)
		}
		if special != "" {
			ids = append(ids, n.pieces[special])
		}
		text = after
	}
	return ids
}

func (n naive) firstSpecial(text string) (before, special, after string) {
	first := len(text)
	for _, candidate := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		if i := strings.Index(text, candidate); i >= 0 && i < first {
			first, special = i, candidate
		}
	}
	return text[:first], special, text[first+len(special):]
}

func (n naive) words(text string) []string {
	var clean []rune
	for _, r := range text {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			clean = append(clean, ' ')
		case r == 0 || r == 0xFFFD || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		case unicode.Is(unicode.White_Space, r):
			clean = append(clean, ' ')
		case n.ideograph(r):
			clean = append(clean, ' ', r, ' ')
		default:
			clean = append(clean, r)
		}
	}
	decomposed := []rune(norm.NFD.String(string(clean)))
	letters := slices.DeleteFunc(decomposed, func(r rune) bool { return unicode.Is(unicode.Mn, r) })
	var spaced []rune
	for _, r := range letters {
		r = unicode.ToLower(r)
		if n.punctuation(r) {
			spaced = append(spaced, ' ', r, ' ')
		} else {
			spaced = append(spaced, r)
		}
	}
	return slices.DeleteFunc(strings.Split(string(spaced), " "), func(word string) bool { return word == "" })
}

func (naive) ideograph(r rune) bool {
	for _, block := range [][2]rune{
		{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
		{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F},
	} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

func (naive) punctuation(r rune) bool {
	return 33 <= r && r <= 47 || 58 <= r && r <= 64 || 91 <= r && r <= 96 || 123 <= r && r <= 126 || unicode.IsPunct(r)
}

func (n naive) spell(word string) []int32 {
	runes := []rune(word)
	if len(runes) > 100 {
		return []int32{1}
	}
	var ids []int32
	for begin := 0; begin < len(runes); {
		end := len(runes)
		for ; end > begin; end-- {
			piece := string(runes[begin:end])
			if begin > 0 {
				piece = "##" + piece
			}
			if id, ok := n.pieces[piece]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end == begin {
			return []int32{1}
		}
		begin = end
	}
	return ids
}

// textOf draws texts from pieces that meet each other at awkward places.
func textOf() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			" ", "\t", "\u0085", "\u00a0", "\x00", "\x1b", "�", "\xff", "\u200d", "\ue000", "\u0378",
			"[CLS]", "[MASK]", "[UNK]", "[unk]", "[", "]", "##", "##ing", "$", "—", "。", "*",
			"e\u0301", "é", "İ", "ß", "ΑΣ", "K", "\u0301", "\u20dd", "ﬁ", "豈", "京", "タワー", "한글", "𠮷", "नमस्ते", "😀",
			strings.Repeat("a", 100), strings.Repeat("é", 101), "running", "PostgreSQL", "antidisestablishment", "3.14",
		}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
	})
}

func TestTokenizerEqualsTheNaiveOne(t *testing.T) {
	t.Parallel()
	model, naive := loadModel(t), newNaive()
	rapid.Check(t, func(t *rapid.T) {
		text := textOf().Draw(t, "text")
		got := model.vocabulary.appendIDs([]int32{}, text)
		if want := naive.ids(text); !slices.Equal(want, got) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
}

func FuzzTokenizer(f *testing.F) {
	model, naive := loadModel(f), newNaive()
	for _, test := range readGolden(f).Cases {
		f.Add(test.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := model.vocabulary.appendIDs([]int32{}, text)
		require.Equal(t, naive.ids(text), got)
		require.Equal(t, got, model.vocabulary.appendIDs([]int32{}, text), "not deterministic")
		for _, id := range got {
			require.GreaterOrEqual(t, id, int32(0))
			require.Less(t, int(id), len(model.table.scales))
		}
		checkVector(t, model, got)
	})
}

func checkVector(t *testing.T, model *staticModel, ids []int32) {
	t.Helper()
	vector := make(Vector, staticDimensions)
	if !model.embed(vector, ids, Query) {
		require.Empty(t, known(ids))
		return
	}
	require.InDelta(t, 1, length(vector), 1e-4)
}

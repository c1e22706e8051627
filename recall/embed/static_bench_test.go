package embed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hundredTokens is ordinary talk of exactly 100 tokens.
const hundredTokens = `Priya: morning Tomas, did the parcel from the museum ever turn up? I waited at home all of Tuesday and nobody rang.
Tomas: It came yesterday, but the box was dented, so I took photos before I opened it. The prints are fine, thankfully.
Priya: What a relief! Could you bring them on Saturday when we meet at the harbour cafe? My sister wants to choose one for her new flat
before she leaves for Lisbon next week, so any day but Sunday`

func TestTheBenchmarkTextHasAHundredTokens(t *testing.T) {
	t.Parallel()
	require.Len(t, loadModel(t).vocabulary.appendIDs(nil, hundredTokens), 100)
}

func BenchmarkStatic(b *testing.B) {
	loadModel(b)
	for name, text := range map[string]string{
		"100 tokens":  hundredTokens,
		"question":    "What time does the ferry to the island leave on Sundays?",
		"accents":     strings.ReplaceAll(hundredTokens, "e", "é"),
		"Chinese":     strings.Repeat("我昨天去了北京，天气很好！", 12),
		"worst word":  strings.Repeat("qzx", 33),
		"1500 bytes":  strings.Repeat(hundredTokens+" ", 4)[:1500],
		"no language": strings.Repeat("x1", 750),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Static{}).Embed(b.Context(), []string{text}, Document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTokenizer(b *testing.B) {
	model := loadModel(b)
	var ids []int32
	b.ReportAllocs()
	for b.Loop() {
		ids = model.vocabulary.appendIDs(ids[:0], hundredTokens)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		table, err := readTable(tableFile)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := readVocabulary(vocabularyFile, len(table.scales)); err != nil {
			b.Fatal(err)
		}
	}
}

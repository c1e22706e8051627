package embed

import (
	"context"
	_ "embed" // origin and licence
	"math"
	"sync"
)

// lengthPrior is the length of the sum of token rows at which a text counts
// half. Measured: a short 'yes, lovely!' lies near every question, and this
// takes it down.
const lengthPrior = 150

//go:embed potion/README.md
var staticOrigin string

//go:embed potion/LICENSE
var staticLicense string

// StaticNotice is the origin and the licence of the model that [Static] uses,
// to be shown to whoever holds the binary. Markdown.
func StaticNotice() string { return staticOrigin + "\n" + staticLicense }

// Static embeds English texts by summing a table's rows: no network, no
// service, some ten microseconds a text. The table is in the binary and is
// loaded at the first use. Texts of any length have one vector. The zero value
// is ready.
type Static struct{}

var _ Embedder = Static{}

// staticModel is what the files hold.
type staticModel struct {
	table      *table
	vocabulary *vocabulary
}

// loadStatic reads the files once for the process, when first needed:
// subcommands that embed nothing do not wait for it.
var loadStatic = sync.OnceValues(func() (*staticModel, error) {
	table, err := readTable(tableFile)
	if err != nil {
		return nil, err
	}
	vocabulary, err := readVocabulary(vocabularyFile, len(table.scales))
	if err != nil {
		return nil, err
	}
	return &staticModel{table: table, vocabulary: vocabulary}, nil
})

// Model is "potion-base-8M".
func (Static) Model() string { return "potion-base-8M" }

// Dimensions is 256.
func (Static) Dimensions() int { return staticDimensions }

// MaxTokens is 0: no limit.
func (Static) MaxTokens() int { return 0 }

// LengthPrior is true.
func (Static) LengthPrior() bool { return true }

// Embed gives query vectors the length 1 and document vectors the length
// |v| / (|v| + 150), v being the sum of the token rows. A text has no vector
// where no word of it can be spelt: empty, only emoji, a script unknown to the
// model. Beyond those of [Embedder] it has no errors.
func (Static) Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	model, err := loadStatic()
	if err != nil {
		return nil, err
	}
	vectors := make([]Vector, len(texts))
	values := make([]float32, len(texts)*staticDimensions)
	var buffer [512]int32
	ids := buffer[:0]
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, ContextError(err)
		}
		ids = model.vocabulary.appendIDs(ids[:0], text)
		vector := values[i*staticDimensions:][:staticDimensions:staticDimensions]
		if model.embed(vector, ids, kind) {
			vectors[i] = vector
		}
	}
	return vectors, nil
}

// embed writes the vector of the pieces ids and reports whether there is one.
func (m *staticModel) embed(vector Vector, ids []int32, kind Kind) bool {
	sum, length := m.sum(ids)
	if length == 0 {
		return false
	}
	divisor := length
	if kind != Query {
		divisor += lengthPrior
	}
	for i, value := range sum {
		vector[i] = value / divisor
	}
	return true
}

// sum gives the sum of the rows of ids, and its length.
func (m *staticModel) sum(ids []int32) (sum [staticDimensions]float32, length float32) {
	for _, id := range ids {
		if id != unknownPiece {
			m.table.add(&sum, id)
		}
	}
	var squares float64
	for _, value := range sum {
		squares += float64(value) * float64(value)
	}
	return sum, float32(math.Sqrt(squares))
}

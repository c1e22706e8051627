package embedtest

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"unicode"
)

// Words gives the vector that a [Stub] has for text: of length 1, the same in
// every process, and the nearer to another text's the more words they share.
// Case and punctuation do not count; text without words is one word.
func Words(text string, dimensions int) []float64 {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	if len(words) == 0 {
		words = []string{text}
	}
	sum := make([]float64, dimensions)
	for _, word := range words {
		addWord(sum, word)
	}
	return unit(sum)
}

// addWord adds the random direction that belongs to word.
func addWord(sum []float64, word string) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(word))
	random := rand.New(rand.NewPCG(hash.Sum64(), 0)) //nolint:gosec // must be the same each time
	for i := range sum {
		sum[i] += random.NormFloat64()
	}
}

func unit(values []float64) []float64 {
	var squares float64
	for _, value := range values {
		squares += value * value
	}
	for i := range values {
		values[i] /= math.Sqrt(squares)
	}
	return values
}

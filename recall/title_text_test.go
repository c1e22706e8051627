package recall

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestATitleIsTakenOutOfAnAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Trip to Kyoto":                            "Trip to Kyoto",
		"  Trip\tto   Kyoto \n":                    "Trip to Kyoto",
		"\n\nTrip to Kyoto\nIn April\n":            "Trip to Kyoto",
		`"Trip to Kyoto"`:                          "Trip to Kyoto",
		"**\"Trip to Kyoto\"**":                    "Trip to Kyoto",
		"# Trip to Kyoto":                          "Trip to Kyoto",
		"Title: “Trip to Kyoto”":                   "Trip to Kyoto",
		"「京都への旅」":                                  "京都への旅",
		`"Tea" and "coffee"`:                       `"Tea" and "coffee"`,
		`The meaning of "tea"`:                     `The meaning of "tea"`,
		"The Joneses'":                             "The Joneses'",
		"#tea in C*":                               "#tea in C*",
		"<think>Kyoto, so\na trip</think>\n\nTrip": "Trip",
		"a trip</think>Trip":                       "Trip",
		"<think>Kyoto, so a trip to":               "",
		"Nul\x00s and bells\a":                     "Nul s and bells",
		"---\nTrip to Kyoto":                       "Trip to Kyoto",
		"🌸":                                        "🌸",
		"":                                         "",
		`""`:                                       "",
		" \n\t.\n":                                 "",
	} {
		assert.Equal(t, want, cleanTitle(answer, 4096), "%q", answer)
	}
}

func TestATitleIsBounded(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("word ", 100))
	got := cleanTitle(words, 4096)
	assert.Equal(t, 195, utf8.RuneCountInString(got), "to the end of a word")
	assert.True(t, strings.HasSuffix(got, " word…"), got)
	assert.Equal(t, strings.Repeat("京", 199)+"…", cleanTitle(strings.Repeat("京", 201), 4096))
	assert.Equal(t, strings.Repeat("京", 200), cleanTitle(strings.Repeat("京", 200), 4096))
	for limit := range 40 {
		got := cleanTitle("京都への旅 and what else there is", limit)
		assert.LessOrEqual(t, len(got), limit)
		assert.True(t, utf8.ValidString(got))
	}
}

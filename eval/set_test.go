package eval

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readFile(t *testing.T, name string) Set {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	set, err := Read(file)
	require.NoError(t, err)
	return set
}

func TestASampleBecomesAConversationWithItsQuestions(t *testing.T) {
	t.Parallel()
	set := readFile(t, "samples.json")
	require.Len(t, set.Conversations, 2)
	assert.Equal(t, 18, set.messages())
	assert.Equal(t, 2, set.LeftOut, "the adversarial one, and the one without evidence")
	turns := set.Conversations[0].Turns
	assert.Equal(t, "bakery", set.Conversations[0].ID)
	assert.Equal(t, Turn{
		ID: "D1:5", Part: "1", Place: 5, Role: "user", Name: "Nora",
		Text: "That is so kind of her. two women with aprons and a tray of buns",
		At:   time.Date(2025, 2, 3, 9, 5, 4, 0, time.UTC),
	}, turns[4])
	assert.Equal(t, Turn{
		ID: "D2:1", Part: "2", Place: 1, Role: "assistant", Name: "Emil",
		Text: "I finally hired someone, a pastry chef from Lyon.", At: time.Date(2025, 3, 21, 18, 40, 0, 0, time.UTC),
	}, turns[6])
	require.Len(t, set.Questions, 6)
	assert.Equal(t, Question{
		Conversation: "bakery", Text: "Who helped Emil behind the counter?", Evidence: []string{"D1:3", "D1:4"}, Category: "4",
	}, set.Questions[1])
}

func TestLinesBecomeConversationsWithTheirQuestions(t *testing.T) {
	t.Parallel()
	set := readFile(t, "talks.jsonl")
	require.Len(t, set.Conversations, 2)
	assert.Equal(t, 1, set.LeftOut)
	assert.Equal(t, []Turn{
		{ID: "m1", Place: 0, Role: "user", Name: "Nora", Text: "Which flour do you use?", At: time.Date(2025, 2, 3, 9, 5, 0, 0, time.UTC)},
		{ID: "m2", Place: 1, Role: "assistant", Name: "Emil", Text: "Spelt, from the mill by the river.", At: time.Date(2025, 2, 3, 9, 6, 0, 0, time.UTC)},
		{ID: "m3", Place: 2, Role: "user", Text: "I know that mill.", At: time.Date(2025, 2, 3, 9, 7, 0, 0, time.UTC)},
	}, set.Conversations[0].Turns)
	assert.Equal(t, []Question{
		{Conversation: "bakery", Text: "Where does the spelt come from?", Evidence: []string{"m2"}, Category: "place"},
		{Conversation: "trail", Text: "When does the ferry leave?", Evidence: []string{"m1"}},
	}, set.Questions)
}

func TestABadFileIsRefused(t *testing.T) {
	t.Parallel()
	const (
		turn     = `{"speaker":"a","dia_id":"D1:1","text":"x"}`
		question = `"qa":[{"question":"q","evidence":["D1:1"],"category":1}]`
	)
	sample := func(conversation string) string {
		return `[{"sample_id":"s","conversation":{` + conversation + `},` + question + `}]`
	}
	for text, want := range map[string]string{
		"":                                   "nothing to read",
		"\n\t":                               "nothing to read",
		"[1]":                                "cannot unmarshal",
		"[]":                                 "no question",
		sample(`"session_1":[` + turn + `]`): "session_1_date_time",
		sample(`"session_1":[` + turn + `],"session_1_date_time":"yesterday"`): "session_1_date_time",
		sample(`"session_1":7`): "session_1",
		sample(`"speaker_a":7`): "speaker_a",
		sample(`"session_1":[{"dia_id":"1"}],"session_1_date_time":"9:05 am on 3 February, 2025"`):            "dia_id",
		sample(`"session_1":[` + turn + `,` + turn + `],"session_1_date_time":"9:05 am on 3 February, 2025"`): "given twice",
		`[{"sample_id":"","conversation":{},` + question + `}]`:                                               "no name",
		`[{"sample_id":"s","conversation":{}},{"sample_id":"s","conversation":{}}]`:                           "given twice",
		`{"conversation":"c"}`:                                                                                                "object 1",
		`{"conversation":"c","question":"q","messages":[]}`:                                                                   "object 1",
		`{"conversation":"c","question":"q","evidence":["m"]}`:                                                                "not there",
		`{"conversation":"c","messages":[]}` + "\n" + `{"conversation":"c","question":"q"}`:                                   "no question with evidence",
		`{"conversation":"c","messages":[{"id":"m","text":"x"},{"id":"m","text":"x"}]}`:                                       "given twice",
		`{"conversation":"c","messages":[]}` + "\n" + `{"conversation":"c","query":"q"}`:                                      "object 2",
		`{"conversation":"c","messages":[{"id":"m","createdAt":"yesterday"}]}`:                                                "object 1",
		`{"conversation":"c","messages":[]}` + "\n" + `{"conversation":"c","question":"q","evidence":["m"],"category":"x"} {`: "object 3",
	} {
		_, err := Read(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%s", text)
	}
}

package recall

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGeneratedTitle bounds a title that a model has made, in characters: twice what
// it is asked for, and some more for scripts and instructions that need it.
const maxGeneratedTitle = 200

// thoughts are what some models write before, or among, their answers.
var thoughts = regexp.MustCompile(`(?s)<think>.*?</think>`)

// titleLabel is how some models announce a title.
var titleLabel = regexp.MustCompile(`(?i)^(#+\s+|title:\s+)+`)

// cleanTitle gives the title in a model's answer: its first line with words, without
// thoughts, Markdown, quotes and control characters, and not too long. Empty where
// there is none.
func cleanTitle(answer string, maxBytes int) string {
	answer = withoutThoughts(answer)
	for line := range strings.Lines(answer) {
		title := unwrap(strings.Join(strings.FieldsFunc(line, isGap), " "))
		if strings.ContainsFunc(title, isWord) {
			return shortTitle(title, maxBytes)
		}
	}
	return ""
}

// withoutThoughts removes a model's thoughts, also those whose beginning was in its
// template, or whose end it did not come to.
func withoutThoughts(answer string) string {
	answer = thoughts.ReplaceAllString(answer, "")
	if _, rest, found := strings.Cut(answer, "</think>"); found {
		answer = rest
	}
	answer, _, _ = strings.Cut(answer, "<think>")
	return answer
}

func isGap(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// isWord is true of what can say something: letters, numbers, and symbols such as
// emoji.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) }

// wrappings are what a title as a whole can stand in.
var wrappings = [][2]string{
	{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"**", "**"}, {"*", "*"}, {"“", "”"}, {"„", "“"}, {"‘", "’"}, {"«", "»"},
	{"「", "」"}, {"『", "』"}, {"《", "》"},
}

// unwrap takes a title out of quotes and Markdown.
func unwrap(title string) string {
	for {
		bare := titleLabel.ReplaceAllString(title, "")
		for _, wrapping := range wrappings {
			bare = unquote(bare, wrapping[0], wrapping[1])
		}
		if bare == title {
			return title
		}
		title = bare
	}
}

// unquote takes quotes away that a text begins and ends with, where it is one
// quotation: "tea" and "coffee" are two.
func unquote(text, opening, closing string) string {
	inner, opens := strings.CutPrefix(text, opening)
	inner, closes := strings.CutSuffix(inner, closing)
	if !opens || !closes || strings.Contains(inner, opening) || strings.Contains(inner, closing) {
		return text
	}
	return strings.TrimSpace(inner)
}

// shortTitle cuts a title that is too long, at a space where there is one.
func shortTitle(title string, maxBytes int) string {
	const mark = "…"
	if len(title) <= maxBytes && utf8.RuneCountInString(title) <= maxGeneratedTitle {
		return title
	}
	if runes := []rune(title); len(runes) >= maxGeneratedTitle {
		title = string(runes[:maxGeneratedTitle-1])
	}
	title = shorten(title, maxBytes-len(mark))
	if i := strings.LastIndexByte(title, ' '); i > len(title)/2 {
		title = title[:i]
	}
	if title == "" {
		return ""
	}
	return strings.TrimRight(title, " ") + mark
}

// shorten cuts a text to so many bytes, between characters.
func shorten(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	end := max(0, maxBytes)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

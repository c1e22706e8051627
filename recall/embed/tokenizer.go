package embed

import (
	_ "embed" // the vocabulary
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed potion/vocab.txt
var vocabularyFile string

// The first lines of the vocabulary. [UNK] stands for a word that the
// vocabulary cannot spell; its row means nothing.
const (
	specialPieces = 5
	unknownPiece  = 1
)

// maxWordRunes is the length above which a word is unknown unread, in code points.
const maxWordRunes = 100

// continuationMark begins the pieces that continue a word.
const continuationMark = "##"

var errVocabulary = errors.New("embed: the built-in vocabulary is damaged")

// vocabulary splits text into pieces, by the longest match from the left
// (WordPiece). A piece's id is its line in the file and its row in the table.
type vocabulary struct {
	// specials are matched as they stand, before anything else.
	specials []string
	// starts begin a word, continuations go on with it. Two maps, so that no
	// key has to be put together for a look-up.
	starts, continuations map[string]int32
	// longest is the length of the longest key, in bytes.
	longest int
}

// readVocabulary reads one piece a line, rows of them.
func readVocabulary(file string, rows int) (*vocabulary, error) {
	v := &vocabulary{
		starts:        make(map[string]int32, rows),
		continuations: make(map[string]int32, rows/4),
	}
	id := int32(0)
	for line := range strings.Lines(file) {
		v.addPiece(strings.TrimSuffix(line, "\n"), id)
		id++
	}
	if int(id) != rows || len(v.starts)+len(v.continuations) != rows {
		return nil, errVocabulary
	}
	return v, nil
}

func (v *vocabulary) addPiece(piece string, id int32) {
	if id < specialPieces {
		v.specials = append(v.specials, piece)
	}
	continuation, continues := strings.CutPrefix(piece, continuationMark)
	if continues {
		v.continuations[continuation] = id
		v.longest = max(v.longest, len(continuation))
		return
	}
	v.starts[piece] = id
	v.longest = max(v.longest, len(piece))
}

// appendIDs appends the ids of the pieces of text, with unknownPiece for every
// word that cannot be spelt.
func (v *vocabulary) appendIDs(ids []int32, text string) []int32 {
	begin := 0
	for i := 0; i < len(text); {
		bracket := strings.IndexByte(text[i:], '[')
		if bracket < 0 {
			break
		}
		i += bracket
		id, size := v.specialAt(text[i:])
		if size == 0 {
			i++
			continue
		}
		ids = append(v.appendText(ids, text[begin:i]), id)
		i += size
		begin = i
	}
	return v.appendText(ids, text[begin:])
}

// specialAt gives the special piece that text begins with, and its length in
// bytes: 0 without one.
func (v *vocabulary) specialAt(text string) (id int32, size int) {
	for id, special := range v.specials {
		if strings.HasPrefix(text, special) {
			return int32(id), len(special)
		}
	}
	return 0, 0
}

// appendText splits text, which has no special pieces, at spaces and at every
// punctuation character, which is a word of its own.
func (v *vocabulary) appendText(ids []int32, text string) []int32 {
	var buffer [2048]byte // most texts fit, and nothing is allocated
	normal := appendNormal(buffer[:0], text)
	begin := 0
	for i := 0; i < len(normal); {
		border, size := classify(normal[i:])
		end := i + size
		if border != inWord {
			ids = v.appendWord(ids, normal[begin:i])
			begin = end
		}
		if border == punctuation {
			ids = v.appendWord(ids, normal[i:end])
		}
		i = end
	}
	return v.appendWord(ids, normal[begin:])
}

// appendWord spells one word: all of it, or unknownPiece. Nothing for no word.
func (v *vocabulary) appendWord(ids []int32, word []byte) []int32 {
	if len(word) > maxWordRunes && utf8.RuneCount(word) > maxWordRunes {
		return append(ids, unknownPiece)
	}
	known := len(ids)
	pieces := v.starts
	for len(word) > 0 {
		id, size := v.longestPiece(pieces, word)
		if size == 0 {
			return append(ids[:known], unknownPiece)
		}
		ids = append(ids, id)
		word = word[size:]
		pieces = v.continuations
	}
	return ids
}

// longestPiece gives the longest of pieces that word begins with, and its
// length in bytes: 0 when none does.
func (v *vocabulary) longestPiece(pieces map[string]int32, word []byte) (id int32, size int) {
	for size := min(len(word), v.longest); size > 0; size-- {
		if size < len(word) && !utf8.RuneStart(word[size]) {
			continue // within a character
		}
		if id, ok := pieces[string(word[:size])]; ok {
			return id, size
		}
	}
	return 0, 0
}

// border is how a character of normal text divides words.
type border uint8

const (
	inWord border = iota
	space
	punctuation
)

// classify looks at the first character of text, size bytes long.
func classify(text []byte) (b border, size int) {
	c := text[0]
	if c < utf8.RuneSelf {
		return asciiBorders[c], 1
	}
	r, size := utf8.DecodeRune(text)
	if unicode.Is(unicode.P, r) {
		return punctuation, size
	}
	return inWord, size
}

// asciiBorders counts the symbols of ASCII as punctuation, as BERT does.
var asciiBorders = func() (borders [utf8.RuneSelf]border) {
	borders[' '] = space
	for c := byte('!'); c <= '~'; c++ {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit {
			borders[c] = punctuation
		}
	}
	return borders
}()

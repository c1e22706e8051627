package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// cjkIdeographs are the characters that are a word each. Kana and Hangul are not.
var cjkIdeographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1},
		{Lo: 0x4E00, Hi: 0x9FFF, Stride: 1},
		{Lo: 0xF900, Hi: 0xFAFF, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1},
		{Lo: 0x2A700, Hi: 0x2B73F, Stride: 1},
		{Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1},
		{Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1},
	},
}

// appendNormal appends text as the vocabulary spells it: lower case, without
// marks and control characters, all white space as spaces, CJK ideographs
// between spaces.
func appendNormal(dst []byte, text string) []byte {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return appendNormalUnicode(dst, text)
		}
	}
	for i := range len(text) {
		dst = appendNormalASCII(dst, text[i])
	}
	return dst
}

func appendNormalASCII(dst []byte, c byte) []byte {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return append(dst, ' ')
	case c < ' ' || c == 0x7F:
		return dst
	case 'A' <= c && c <= 'Z':
		return append(dst, c+'a'-'A')
	}
	return append(dst, c)
}

func appendNormalUnicode(dst []byte, text string) []byte {
	for _, r := range string(norm.NFD.Bytes(appendClean(nil, text))) {
		switch {
		case r < utf8.RuneSelf:
			dst = appendNormalASCII(dst, byte(r))
		case !unicode.Is(unicode.Mn, r):
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

// appendClean appends text without what cannot be seen, and puts spaces around
// ideographs. Only after that may marks be split off: ideographs for
// compatibility become others then.
func appendClean(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r)) // appendNormalASCII sees to it
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		case unicode.Is(unicode.White_Space, r):
			dst = append(dst, ' ')
		case unicode.Is(cjkIdeographs, r):
			dst = append(utf8.AppendRune(append(dst, ' '), r), ' ')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

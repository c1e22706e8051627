package server

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// The headers of RFC 9110 that name versions.
const (
	headerETag    = "ETag"
	headerIfMatch = "If-Match"
)

// invalidHeaders is the text of errors that name headers.
const invalidHeaders = "Invalid headers"

// noVersion is a version that nothing has.
const noVersion = -1

// entityTag finds one at the front of a text: whether it is weak, and what is
// quoted. RFC 9110, section 8.8.3.
var entityTag = regexp.MustCompile(`^(W/)?"([\x21\x23-\x7e\x80-\xff]*)"`)

// tagOf gives the entity tag of a version.
func tagOf(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// ifMatch reads the versions of which the request's object must have one; none
// where any will do. Weak tags match nothing: RFC 9110, section 13.1.1.
func ifMatch(c echo.Context) ([]int64, error) {
	values := c.Request().Header.Values(headerIfMatch)
	list := strings.Trim(strings.Join(values, ","), " \t")
	if len(values) == 0 || list == "*" {
		return nil, nil
	}
	var versions []int64
	for separated := true; list != ""; {
		if list[0] == ',' {
			list, separated = strings.TrimLeft(list[1:], " \t"), true
			continue
		}
		tag := entityTag.FindStringSubmatch(list)
		if tag == nil || !separated {
			return nil, badIfMatch()
		}
		versions = append(versions, versionOf(tag[1] != "", tag[2]))
		list, separated = strings.TrimLeft(list[len(tag[0]):], " \t"), false
	}
	if len(versions) == 0 {
		return nil, badIfMatch()
	}
	return versions, nil
}

// versionOf reads the version from an entity tag; noVersion where it is not one of
// ours, character by character.
func versionOf(weak bool, quoted string) int64 {
	version, err := strconv.ParseInt(quoted, 10, 64)
	if weak || err != nil || strconv.FormatInt(version, 10) != quoted {
		return noVersion
	}
	return version
}

func badIfMatch() error {
	return &refusal{status: http.StatusBadRequest, text: invalidHeaders, issues: []recall.Issue{
		{Field: headerIfMatch, Message: `want * or a list of entity tags, as "3"`},
	}}
}

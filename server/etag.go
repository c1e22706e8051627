package server

import (
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

const (
	headerETag    = "ETag"
	headerIfMatch = "If-Match"
)

// etag is the entity tag of a version.
func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ifMatch reads the versions that the caller means to change; nil where it does not
// say.
func ifMatch(c echo.Context) (*recall.Match, error) {
	given := c.Request().Header.Values(headerIfMatch)
	if len(given) == 0 {
		return nil, nil
	}
	match := &recall.Match{}
	for tag := range strings.SplitSeq(strings.Join(given, ","), ",") {
		tag = strings.TrimSpace(tag)
		version, err := strconv.ParseUint(bare(tag), 10, 63)
		switch {
		case tag == "*":
			match.Any = true
		case err != nil:
			f := faults{text: "Invalid headers"}
			f.add(headerIfMatch, `want versions as ETag has them, like "3", or *`)
			return nil, f.err()
		default:
			match.Versions = append(match.Versions, int64(version))
		}
	}
	return match, nil
}

// bare takes the quotes off a tag. A tag is weak only where a proxy made it so, which
// changes nothing in what it counts.
func bare(tag string) string {
	unquoted, quoted := strings.CutPrefix(strings.TrimPrefix(tag, "W/"), `"`)
	if quoted {
		return strings.TrimSuffix(unquoted, `"`)
	}
	return tag
}

package format

import (
	"regexp"
	"strings"
)

// file is a file of a message.
type file struct {
	// media is its media type; empty where nothing says it.
	media string
	// data is a URL, an id that a provider gave ("file-..."), or base64.
	data string
	name string
}

// readFile reads a file part, whose members are named as in the AI SDK 4 or 5;
// nil for another part. The reference gives a broken URL for one without data
// that is a text; here it is no file.
func readFile(kind string, stored object) *file {
	if kind != kindFile && kind != kindImage {
		return nil
	}
	f := file{
		media: stored.textOf("mimeType", "mediaType"),
		data:  stored.textOf("data", "url", "image"),
		name:  stored.text("filename"),
	}
	if f.data == "" {
		return nil
	}
	media, _, _ := f.split()
	f = f.withMedia(media)
	return &f
}

// split gives the media type and the data of a data URL, and whether they are in
// base64.
func (f file) split() (media, data string, encoded bool) {
	header, data, _ := strings.Cut(f.data, ",")
	header, isData := strings.CutPrefix(header, "data:")
	if !isData {
		return "", "", false
	}
	media, _, _ = strings.Cut(header, ";")
	return media, data, strings.HasSuffix(header, ";base64")
}

// base64 gives the data of a file that is not elsewhere.
func (f file) base64() (data string, ok bool) {
	if _, data, encoded := f.split(); encoded {
		return data, true
	}
	return f.data, !f.elsewhere()
}

var (
	scheme     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	onlyBase64 = regexp.MustCompile(`^[A-Za-z0-9+/]*=*$`)
)

// elsewhere reports whether the data is a URL or an id. A URL without a scheme
// begins as base64 may ("//uQ", an MP3 frame), which the reference takes for one.
func (f file) elsewhere() bool {
	return f.hasID() || scheme.MatchString(f.data) || strings.HasPrefix(f.data, "//") && !onlyBase64.MatchString(f.data)
}

// hasID reports whether the data is the id of a file that a provider keeps.
func (f file) hasID() bool { return strings.HasPrefix(f.data, "file-") }

// url gives the file's URL, which may hold all of it. A data URL stays as it is:
// the reference writes its media type anew and calls it base64 always, which
// breaks one that is not.
func (f file) url() string {
	if f.elsewhere() {
		return f.data
	}
	return "data:" + f.media + ";base64," + f.data
}

// withMedia gives the file with a media type if it has none.
func (f file) withMedia(media string) file {
	if f.media == "" {
		f.media = media
	}
	return f
}

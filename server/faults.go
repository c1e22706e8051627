package server

import (
	"errors"
	"net/http"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// maxIssues bounds the answer to a request that is wrong in every place.
const maxIssues = 100

// faults collects all that is wrong with the shape of one part of a request.
type faults struct {
	text       string // names the part: [invalidBody], ...
	malformed  []recall.Issue
	unstorable []recall.Issue
}

func (f *faults) add(field, message string) {
	if len(f.malformed) < maxIssues {
		f.malformed = append(f.malformed, recall.Issue{Field: field, Message: message})
	}
}

func (f *faults) addUnstorable(field, message string) {
	f.unstorable = append(f.unstorable, recall.Issue{Field: field, Message: message})
}

// checkJSON checks the JSON held by field and reports whether it is sound.
func (f *faults) checkJSON(field string, text []byte, depth int) bool {
	err := strictjson.Check(text, depth)
	var fault *strictjson.Error
	if !errors.As(err, &fault) {
		return true
	}
	if fault.Unstorable {
		f.addUnstorable(join(field, fault.Field), fault.Message)
	} else {
		f.add(join(field, fault.Field), fault.Message)
	}
	return false
}

func (f *faults) err() error {
	switch {
	case len(f.malformed) > 0:
		return &refusal{status: http.StatusBadRequest, text: f.text, issues: f.malformed}
	case len(f.unstorable) > 0:
		return &refusal{status: http.StatusUnprocessableEntity, text: "Cannot be stored", issues: f.unstorable}
	default:
		return nil
	}
}

// join extends the path of a field by that of a part of it.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

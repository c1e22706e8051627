package recall

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// schema checks that value is a JSON schema, and gives it; nil where it is none.
// What it refers to must be within it: nothing is fetched.
func (c *checker) schema(field string, value json.RawMessage) *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	if err != nil {
		c.fail(field, "must be JSON")
		return nil
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothingElse{})
	const address = "schema:memory"
	if err := compiler.AddResource(address, document); err != nil {
		c.fail(field, "is no JSON schema: %v", err)
		return nil
	}
	schema, err := compiler.Compile(address)
	if err != nil {
		c.fail(field, "is no JSON schema: %v", err)
		return nil
	}
	return schema
}

// nothingElse keeps a schema from reaching out.
type nothingElse struct{}

func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("it refers to something outside")
}

// document checks that text is JSON that can be stored and that the schema admits,
// naming each place that it does not.
func (c *checker) document(field, text string, schema *jsonschema.Schema) {
	if err := strictjson.Check([]byte(text), c.limits.JSONDepth); err != nil {
		var fault *strictjson.Error
		if errors.As(err, &fault) {
			c.fail(joinField(field, fault.Field), "%s", fault.Message)
			return
		}
		c.fail(field, "%v", err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		c.violations(field, invalid)
	} else if err != nil {
		c.fail(field, "%v", err)
	}
}

// violations notes the places that a schema refuses: the innermost, since those
// around them are wrong for their sake.
func (c *checker) violations(field string, err *jsonschema.ValidationError) {
	for _, cause := range err.Causes {
		c.violations(field, cause)
	}
	if len(err.Causes) > 0 {
		return
	}
	place := joinField(append([]string{field}, err.InstanceLocation...)...)
	switch why := err.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range why.Missing {
			c.fail(joinField(place, name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range why.Properties {
			c.fail(joinField(place, name), "is unknown")
		}
	default:
		c.fail(place, "%s", shortened(err.ErrorKind.LocalizedString(message.NewPrinter(language.English))))
	}
}

// maxReasonBytes bounds a message that quotes what the caller sent.
const maxReasonBytes = 256

func shortened(text string) string {
	if len(text) <= maxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
}

package recall

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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

package recall

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// patchAt is where the schema of a patch is in the parameters of the tool.
const patchAt = "#/properties/memory"

// The keywords of JSON Schema that matter to [patchSchema].
var (
	// ofSchemas have a schema, or a list of them; ofNamedSchemas an object of them.
	ofSchemas = []string{
		"additionalProperties", "additionalItems", "items", "prefixItems", "contains", "propertyNames",
		"unevaluatedProperties", "unevaluatedItems", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
	}
	ofNamedSchemas = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	// ofWholes have schemas of what a patch puts in place as a whole.
	ofWholes = []string{"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "not", "if"}
	// ofCompletes demand what a patch need not have: the document has it already.
	ofCompletes = []string{"required", "dependentRequired", "minProperties"}
	// ofDocuments say what a whole document is.
	ofDocuments = []string{"$schema", "$id"}
)

// patchSchema gives the schema of a merge patch to a document of a schema, for the
// parameters of the tool: nothing is required, and what refers to a place in the
// schema refers to where that is in the parameters.
func patchSchema(schema json.RawMessage) json.RawMessage {
	keywords := slices.DeleteFunc(memberList(schema), func(m jsonMember) bool { return slices.Contains(ofDocuments, m.name) })
	return rewriteSchema(appendObject(nil, keywords), false)
}

// rewriteSchema does so for a schema, of a whole or of a patch.
func rewriteSchema(schema json.RawMessage, whole bool) json.RawMessage {
	if jsonKind(schema) != '{' {
		return schema // true or false
	}
	keywords := memberList(schema)
	if !whole {
		keywords = slices.DeleteFunc(keywords, func(m jsonMember) bool { return slices.Contains(ofCompletes, m.name) })
	}
	for i, keyword := range keywords {
		within := whole || slices.Contains(ofWholes, keyword.name)
		switch {
		case keyword.name == "$ref":
			keywords[i].value = rewriteReference(keyword.value)
		case slices.Contains(ofNamedSchemas, keyword.name):
			keywords[i].value = rewriteNamed(keyword.value, within)
		case slices.Contains(ofSchemas, keyword.name) && jsonKind(keyword.value) == '[':
			keywords[i].value = rewriteList(keyword.value, within)
		case slices.Contains(ofSchemas, keyword.name):
			keywords[i].value = rewriteSchema(keyword.value, within)
		}
	}
	return appendObject(nil, keywords)
}

func rewriteNamed(schemas json.RawMessage, whole bool) json.RawMessage {
	named := memberList(schemas)
	for i := range named {
		named[i].value = rewriteSchema(named[i].value, whole)
	}
	return appendObject(nil, named)
}

func rewriteList(schemas json.RawMessage, whole bool) json.RawMessage {
	list := []byte{'['}
	for schema := range strictjson.Elements(schemas) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, rewriteSchema(schema, whole)...)
	}
	return append(list, ']')
}

func rewriteReference(reference json.RawMessage) json.RawMessage {
	if target, ok := jsonText(reference); ok && (target == "#" || strings.HasPrefix(target, "#/")) {
		return strconv.AppendQuote(nil, patchAt+target[1:])
	}
	return reference
}

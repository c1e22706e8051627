package recall

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// anything is the jsonpath predicate that every metadata satisfies.
const anything = `1 == 1`

// maxKeyBytes bounds a metadata key in a filter, as the reference does.
const maxKeyBytes = 128

// reservedKeys are refused in filters, as the reference does.
var reservedKeys = []string{"__proto__", "constructor", "prototype"}

// predicate compiles metadata pairs and operators into one SQL/JSON path
// predicate (ISO 9075-2, 9.44) on the metadata. The predicate is a parameter of
// a fixed statement, never a part of its text.
//
// A path is lax by default: it unwraps arrays, and comparing different types
// gives unknown. So each comparison asks for the type first; then it is true or
// false, and NOT of it is right too.
func (c *checker) predicate(metadataField string, metadata map[string]any, where map[string]any) string {
	var parts []string
	if len(metadata) > c.limits.MetadataPairs {
		c.fail(metadataField, "has more than %d pairs", c.limits.MetadataPairs)
		return anything
	}
	for _, key := range sortedKeys(metadata) {
		field := joinField(metadataField, key)
		if c.key(field, key) {
			parts = append(parts, c.equal(field, key, metadata[key]))
		}
	}
	if len(where) > 0 {
		operators := 0
		parts = append(parts, c.where("filter.where", where, &operators, 0))
	}
	return conjunction(parts)
}

func conjunction(parts []string) string { return junction(parts, " && ", anything) }

func junction(parts []string, operator, ifNone string) string {
	if len(parts) == 0 {
		return ifNone
	}
	return "(" + strings.Join(parts, operator) + ")"
}

// where compiles one object of operators: its members are joined by AND.
func (c *checker) where(field string, where map[string]any, operators *int, depth int) string {
	if depth > c.limits.JSONDepth {
		c.fail(field, "is nested deeper than %d", c.limits.JSONDepth)
		return anything
	}
	var parts []string
	for _, key := range sortedKeys(where) {
		at, value := joinField(field, key), where[key]
		switch key {
		case "$and":
			parts = append(parts, conjunction(c.whereList(at, value, operators, depth)))
		case "$or":
			// No alternative holds where there is none.
			parts = append(parts, junction(c.whereList(at, value, operators, depth), " || ", "!("+anything+")"))
		case "$not":
			if inner, ok := value.(map[string]any); ok {
				parts = append(parts, "!("+c.where(at, inner, operators, depth+1)+")")
			} else {
				c.fail(at, "must be an object")
			}
		default:
			if strings.HasPrefix(key, "$") {
				c.fail(at, "is not an operator: $and, $or and $not stand here, and keys")
			} else if c.key(at, key) {
				parts = append(parts, c.comparisons(at, key, value, operators, depth))
			}
		}
	}
	return conjunction(parts)
}

func (c *checker) whereList(field string, value any, operators *int, depth int) []string {
	list, ok := value.([]any)
	if !ok {
		c.fail(field, "must be an array of objects")
		return nil
	}
	var parts []string
	for i, item := range list {
		at := itemField(field, i, "")
		if inner, ok := item.(map[string]any); ok {
			parts = append(parts, c.where(at, inner, operators, depth+1))
		} else {
			c.fail(at, "must be an object")
		}
	}
	return parts
}

// comparisons compiles what is asked of one key: a plain value means $eq.
func (c *checker) comparisons(field, key string, value any, operators *int, depth int) string {
	asked, ok := value.(map[string]any)
	if !ok {
		asked = map[string]any{"$eq": value}
	}
	if len(asked) == 0 {
		c.fail(field, "has no operator")
	}
	var parts []string
	for _, operator := range sortedKeys(asked) {
		at := field
		if ok {
			at = joinField(field, operator)
		}
		if *operators++; *operators > c.limits.WhereOperators {
			c.fail("filter.where", "has more than %d comparisons", c.limits.WhereOperators)
			return anything
		}
		if operator == "$not" {
			// {"key": {"$not": {"$gte": 3}}}
			if _, isObject := asked[operator].(map[string]any); !isObject || depth > c.limits.JSONDepth {
				c.fail(at, "must be an object of operators")
				continue
			}
			parts = append(parts, "!("+c.comparisons(at, key, asked[operator], operators, depth+1)+")")
			continue
		}
		parts = append(parts, c.comparison(at, key, operator, asked[operator]))
	}
	return conjunction(parts)
}

func (c *checker) comparison(field, key, operator string, value any) string {
	switch operator {
	case "$eq":
		return c.equal(field, key, value)
	case "$ne":
		return "!(" + c.equal(field, key, value) + ")"
	case "$gt":
		return c.ordered(field, key, ">", value)
	case "$gte":
		return c.ordered(field, key, ">=", value)
	case "$lt":
		return c.ordered(field, key, "<", value)
	case "$lte":
		return c.ordered(field, key, "<=", value)
	case "$in":
		return c.oneOf(field, key, value)
	case "$nin":
		return "!(" + c.oneOf(field, key, value) + ")"
	case "$exists":
		if present, ok := value.(bool); ok && present {
			return "exists(" + member(key) + ")"
		} else if ok {
			return "!(exists(" + member(key) + "))"
		}
		c.fail(field, "must be true or false")
	default:
		c.fail(field, "is not an operator")
	}
	return anything
}

func (c *checker) oneOf(field, key string, value any) string {
	list, ok := value.([]any)
	if !ok {
		c.fail(field, "must be an array")
		return anything
	}
	if len(list) > c.limits.WhereOperators {
		c.fail(field, "has more than %d values", c.limits.WhereOperators)
		return anything
	}
	var parts []string
	for i, item := range list {
		parts = append(parts, c.equal(itemField(field, i, ""), key, item))
	}
	return junction(parts, " || ", "!("+anything+")")
}

func (c *checker) equal(field, key string, value any) string {
	literal, kind, ok := c.scalar(field, value)
	if !ok {
		return anything
	}
	return typed(key, kind, "==", literal)
}

func (c *checker) ordered(field, key, operator string, value any) string {
	literal, kind, ok := c.scalar(field, value)
	if !ok {
		return anything
	}
	if kind != "number" && kind != "string" {
		c.fail(field, "must be a number or a string")
		return anything
	}
	return typed(key, kind, operator, literal)
}

func typed(key, kind, operator, literal string) string {
	return fmt.Sprintf(`(%s.type() == "%s" && %s %s %s)`, member(key), kind, member(key), operator, literal)
}

// member is the path of a key. Keys need quotes for none of their characters,
// but words such as "true" and "last" have a meaning of their own.
func member(key string) string { return `$."` + key + `"` }

// key checks a metadata key as the reference does.
func (c *checker) key(field, key string) bool {
	valid := key != "" && len(key) <= maxKeyBytes && !slices.Contains(reservedKeys, key)
	for i := range len(key) {
		b := key[i]
		letter := b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		valid = valid && (letter || i > 0 && b >= '0' && b <= '9')
	}
	if !valid {
		c.fail(field, "is not a key: a letter or underscore, then letters, digits and underscores, at most %d", maxKeyBytes)
	}
	return valid
}

// scalar gives a value as a jsonpath literal with its type's name.
func (c *checker) scalar(field string, value any) (literal, kind string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "null", "null", true
	case bool:
		return strconv.FormatBool(v), "boolean", true
	case string:
		before := len(c.issues)
		c.text(field, v, c.limits.MetadataBytes)
		return pathString(v), "string", len(c.issues) == before
	case json.Number:
		return c.number(field, string(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.fail(field, "must be a finite number")
			return "", "", false
		}
		return c.number(field, strconv.FormatFloat(v, 'g', -1, 64))
	case float32, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return c.number(field, fmt.Sprint(v))
	}
	c.fail(field, "must be a string, a finite number, a boolean or null")
	return "", "", false
}

// number checks that text is a JSON number in the range of a float64, which
// bounds its length in the database.
func (c *checker) number(field, text string) (literal, kind string, ok bool) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) || !json.Valid([]byte(text)) || len(text) > maxNumberBytes {
		c.fail(field, "must be a finite number of at most %d characters", maxNumberBytes)
		return "", "", false
	}
	// A jsonpath literal has no sign; a minus before it is an operator, which
	// binds weaker than a comparison does not.
	if strings.HasPrefix(text, "-") {
		return "(" + text + ")", "number", true
	}
	return text, "number", true
}

// maxNumberBytes bounds a number in a filter.
const maxNumberBytes = 64

// pathString writes a jsonpath string literal, whose escapes are those of
// JavaScript.
func pathString(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(quoted)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

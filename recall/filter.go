package recall

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// The jsonpath predicates that every metadata satisfies, and none does.
const (
	anything = `1 == 1`
	nothing  = `1 == 0`
)

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
//
// NOT stands before comparisons only: negation is carried inward on the way.
// PostgreSQL 15 to 18 take wrong keys for a GIN index out of !(a && b) where they
// can take none out of a, and then miss rows.
func (c *checker) predicate(metadataField string, metadata map[string]any, where map[string]any) string {
	var parts []string
	if len(metadata) > c.limits.MetadataPairs {
		c.fail(metadataField, "has more than %d pairs", c.limits.MetadataPairs)
		return anything
	}
	for _, key := range sortedKeys(metadata) {
		field := joinField(metadataField, key)
		if c.key(field, key) {
			parts = append(parts, c.equal(field, key, metadata[key], false))
		}
	}
	if len(where) > 0 {
		compiler := whereCompiler{checker: c}
		parts = append(parts, compiler.object("filter.where", where, false, 0))
	}
	return allOf(parts, false)
}

// allOf joins parts, which are negated already where not is set, by AND; negated
// that is an OR.
func allOf(parts []string, not bool) string {
	if not {
		return anyOf(parts, false)
	}
	if len(parts) == 0 {
		return anything
	}
	return "(" + strings.Join(parts, " && ") + ")"
}

// anyOf is the same by OR.
func anyOf(parts []string, not bool) string {
	if not {
		return allOf(parts, false)
	}
	if len(parts) == 0 {
		return nothing
	}
	return "(" + strings.Join(parts, " || ") + ")"
}

func negated(comparison string, not bool) string {
	if not {
		return "!(" + comparison + ")"
	}
	return comparison
}

// whereCompiler compiles filter.where. Each method compiles the negation of what
// it is given where not is set.
type whereCompiler struct {
	*checker
	counted int // comparisons and alternatives so far
}

// object compiles one object of operators: its members are joined by AND.
func (w *whereCompiler) object(field string, where map[string]any, not bool, depth int) string {
	if depth > w.limits.JSONDepth {
		w.fail(field, "is nested deeper than %d", w.limits.JSONDepth)
		return anything
	}
	var parts []string
	for _, key := range sortedKeys(where) {
		at, value := joinField(field, key), where[key]
		switch {
		case key == "$and":
			parts = append(parts, allOf(w.list(at, value, not, depth), not))
		case key == "$or":
			parts = append(parts, anyOf(w.list(at, value, not, depth), not))
		case key == "$not":
			if inner, ok := value.(map[string]any); ok {
				parts = append(parts, w.object(at, inner, !not, depth+1))
			} else {
				w.fail(at, "must be an object")
			}
		case strings.HasPrefix(key, "$"):
			w.fail(at, "is not an operator: $and, $or and $not stand here, and keys")
		case w.key(at, key):
			parts = append(parts, w.keyed(at, key, value, not, depth))
		}
	}
	return allOf(parts, not)
}

func (w *whereCompiler) list(field string, value any, not bool, depth int) []string {
	list, ok := value.([]any)
	if !ok {
		w.fail(field, "must be an array of objects")
		return nil
	}
	var parts []string
	for i, item := range list {
		at := itemField(field, i, "")
		inner, ok := item.(map[string]any)
		if !ok {
			w.fail(at, "must be an object")
			continue
		}
		if !w.count() {
			break
		}
		parts = append(parts, w.object(at, inner, not, depth+1))
	}
	return parts
}

// count counts one more comparison or alternative and says whether there may be
// so many; the first too many is the one issue.
func (w *whereCompiler) count() bool {
	w.counted++
	if w.counted == w.limits.WhereOperators+1 {
		w.fail("filter.where", "has more than %d comparisons and alternatives", w.limits.WhereOperators)
	}
	return w.counted <= w.limits.WhereOperators
}

// keyed compiles what is asked of one key: a plain value means $eq.
func (w *whereCompiler) keyed(field, key string, value any, not bool, depth int) string {
	asked, ok := value.(map[string]any)
	if !ok {
		if !w.count() {
			return anything
		}
		return w.equal(field, key, value, not)
	}
	if len(asked) == 0 {
		w.fail(field, "has no operator")
	}
	var parts []string
	for _, operator := range sortedKeys(asked) {
		if !w.count() {
			return anything
		}
		at := joinField(field, operator)
		if operator == "$not" {
			parts = append(parts, w.keyedNot(at, key, asked[operator], not, depth+1))
		} else {
			parts = append(parts, w.comparison(at, key, operator, asked[operator], not))
		}
	}
	return allOf(parts, not)
}

// keyedNot compiles the $not of {"key": {"$not": {"$gte": 3}}}.
func (w *whereCompiler) keyedNot(field, key string, value any, not bool, depth int) string {
	if _, ok := value.(map[string]any); !ok || depth > w.limits.JSONDepth {
		w.fail(field, "must be an object of operators, nested at most %d deep", w.limits.JSONDepth)
		return anything
	}
	return w.keyed(field, key, value, !not, depth)
}

func (w *whereCompiler) comparison(field, key, operator string, value any, not bool) string {
	switch operator {
	case "$eq":
		return w.equal(field, key, value, not)
	case "$ne":
		return w.equal(field, key, value, !not)
	case "$gt":
		return w.ordered(field, key, ">", value, not)
	case "$gte":
		return w.ordered(field, key, ">=", value, not)
	case "$lt":
		return w.ordered(field, key, "<", value, not)
	case "$lte":
		return w.ordered(field, key, "<=", value, not)
	case "$in":
		return w.oneOf(field, key, value, not)
	case "$nin":
		return w.oneOf(field, key, value, !not)
	case "$exists":
		if present, ok := value.(bool); ok {
			return negated("exists("+member(key)+")", present == not)
		}
		w.fail(field, "must be true or false")
	default:
		w.fail(field, "is not an operator")
	}
	return anything
}

func (w *whereCompiler) oneOf(field, key string, value any, not bool) string {
	list, ok := value.([]any)
	if !ok {
		w.fail(field, "must be an array")
		return anything
	}
	if len(list) > w.limits.WhereOperators {
		w.fail(field, "has more than %d values", w.limits.WhereOperators)
		return anything
	}
	var parts []string
	for i, item := range list {
		parts = append(parts, w.equal(itemField(field, i, ""), key, item, not))
	}
	return anyOf(parts, not)
}

func (w *whereCompiler) ordered(field, key, operator string, value any, not bool) string {
	literal, kind, ok := w.scalar(field, value)
	if !ok {
		return anything
	}
	if kind != "number" && kind != "string" {
		w.fail(field, "must be a number or a string")
		return anything
	}
	return typed(key, kind, operator, literal, not)
}

func (c *checker) equal(field, key string, value any, not bool) string {
	literal, kind, ok := c.scalar(field, value)
	if !ok {
		return anything
	}
	return typed(key, kind, "==", literal, not)
}

func typed(key, kind, operator, literal string, not bool) string {
	return negated(fmt.Sprintf(`(%s.type() == %q && %[1]s %[3]s %[4]s)`, member(key), kind, operator, literal), not)
}

// member is the path of a key. Keys need quotes for none of their characters,
// but words such as "true" and "last" have a meaning of their own.
func member(key string) string { return `$."` + key + `"` }

// key checks a metadata key as the reference does.
func (c *checker) key(field, key string) bool {
	if slices.Contains(reservedKeys, key) {
		c.fail(field, "is a reserved word")
		return false
	}
	valid := key != "" && len(key) <= maxKeyBytes
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

// number checks that text is a JSON number that is no longer in the database
// than here.
func (c *checker) number(field, text string) (literal, kind string, ok bool) {
	if err := strictjson.CheckNumber(text); err != nil {
		c.fail(field, "must be a finite number: %v", err)
		return "", "", false
	}
	return text, "number", true
}

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

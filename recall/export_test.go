package recall

import "time"

// ToolPairs is for the test that holds it to the statements.
var ToolPairs = toolPairs

// TokensOf is tokensOf.
var TokensOf = tokensOf

// At makes a keyring's clock show what now gives.
func (k *Keyring) At(now func() time.Time) { k.now = now }

// MetadataPredicate is what filter.metadata is compiled to.
func MetadataPredicate(pairs map[string]any) string {
	return (&checker{limits: DefaultLimits()}).predicate("", pairs, nil)
}

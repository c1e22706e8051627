package recall

// ToolPairs is for the test that holds it to the statements.
var ToolPairs = toolPairs

// TokensOf is tokensOf.
var TokensOf = tokensOf

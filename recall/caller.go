package recall

import "strings"

// Caller says whose memory a request may reach and whether it may change it. The
// zero Caller reaches and changes all.
type Caller struct {
	// ID tells callers apart; empty for the operator himself.
	ID string
	// Resource is the one resource that the caller reaches; empty for no such bound.
	Resource string
	// Prefix is what the ids of all resources that the caller reaches begin with, byte
	// by byte; empty for no such bound.
	Prefix string
	// ReadOnly callers change nothing.
	ReadOnly bool
}

// Bound says whether there are resources that the caller does not reach.
func (c Caller) Bound() bool { return c.Resource != "" || c.Prefix != "" }

// Reaches says whether the caller reaches what belongs to a resource.
func (c Caller) Reaches(resourceID string) bool {
	return (c.Resource == "" || resourceID == c.Resource) && strings.HasPrefix(resourceID, c.Prefix)
}

// For gives the memory as a caller sees it: what belongs to others does not exist.
func (m *Memory) For(caller Caller) *Memory {
	within := *m
	within.caller = caller
	return &within
}

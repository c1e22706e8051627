package recall

import (
	"cmp"
	"slices"
	"strings"
)

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

// owner gives the resource that a request is about which need not name one: the one
// that the caller is bound to where it does not. Empty for neither.
func (c Caller) owner(resourceID string) string { return cmp.Or(resourceID, c.Resource) }

// mayWrite fails with CodeForbidden for callers that change nothing.
func (c Caller) mayWrite() error {
	if c.ReadOnly {
		return errorf(CodeForbidden, "Access denied: this caller may only read")
	}
	return nil
}

// maySeeAll fails with CodeForbidden for bound callers, where something is of no
// resource, and so of all.
func (c Caller) maySeeAll() error {
	if c.Bound() {
		return errorf(CodeForbidden, "Access denied: this is not of the caller's resources alone")
	}
	return nil
}

// mayOperate fails with CodeForbidden for callers that may not change what is of all.
func (c Caller) mayOperate() error { return cmp.Or(c.maySeeAll(), c.mayWrite()) }

// For gives the memory as a caller sees it. What belongs to resources that it does not
// reach does not exist, in whatever way a method is asked for it: nothing is found,
// CodeNotFound says so where a method would say it of an id that no one has, and
// nothing is changed. Only an id that another has cannot be given to a new thread or
// message: CodeConflict. What is of no resource, as the configurations of agents and
// the embedding indexes, a bound caller may read and not change: CodeForbidden. So
// fails every method that writes for a caller that may only read.
//
// Where no resource need be named, a caller of one resource means that one.
func (m *Memory) For(caller Caller) *Memory {
	within := *m
	within.caller = caller
	return &within
}

// reach is the caller as statements take it (recall.reached). Each that finds rows by
// their ids does; what follows in the same transaction finds by what they gave.
func (m *Memory) reach() []string { return []string{m.caller.Resource, m.caller.Prefix} }

// reachable fails unless the caller reaches the resources that something is to be made
// in, or is held of. A resource that nothing is held of may have anything made in it,
// so this is the one answer for all others.
func (m *Memory) reachable(resourceIDs ...string) error {
	if slices.ContainsFunc(resourceIDs, func(id string) bool { return !m.caller.Reaches(id) }) {
		return resourceNotFound()
	}
	return nil
}

package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version and revision are set by the build; without that the module's own
// version is printed.
var version, revision string

type versionCommand struct {
	outputSettings `embed:""`
}

// Run prints what the build recorded of itself.
func (c *versionCommand) Run(term terminal) error {
	name, commit := version, cmp.Or(revision, "unknown")
	if info, ok := debug.ReadBuildInfo(); ok {
		name = cmp.Or(name, info.Main.Version)
	}
	return c.print(term, "pgrecall "+name+", revision "+commit+", "+runtime.Version(), map[string]any{
		"version":  name,
		"revision": commit,
		"go":       runtime.Version(),
	})
}

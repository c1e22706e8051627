package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is set by the build; without that the module's own is printed.
var version string

type versionCommand struct {
	outputSettings `embed:""`
}

// Run prints what the build recorded of itself.
func (c *versionCommand) Run(term terminal) error {
	name, revision := version, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		name = cmp.Or(name, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	return c.print(term, "pgrecall "+name+", revision "+revision+", "+runtime.Version(), map[string]any{
		"version":  name,
		"revision": revision,
		"go":       runtime.Version(),
	})
}

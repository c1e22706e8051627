package main

import (
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	outputSettings `embed:""`
}

// Run prints what the build recorded of itself.
func (c *versionCommand) Run(term terminal) error {
	version, revision := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	return c.print(term, "pgrecall "+version+", revision "+revision+", "+runtime.Version(), map[string]any{
		"version":  version,
		"revision": revision,
		"go":       runtime.Version(),
	})
}

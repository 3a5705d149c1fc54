package main

import "runtime/debug"

// release is the version of a build that git does not tell, set by its linker: -ldflags "-X main.release=v1.2.3".
var release string

// version is the module's version, and the commit when the build recorded it.
func version() string {
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := build.Main.Version
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			text += " " + setting.Value
		}
	}
	return text
}

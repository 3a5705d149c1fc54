// Package version says which version of the program this is.
package version

import (
	"runtime/debug"
)

// release is the version of a build that git does not tell, set by its linker: -ldflags
// "-X shoal.dev/shoal/cmd/shoal/internal/version.release=v1.2.3".
var release string

// String is the module's version, and the commit when the build recorded it.
func String() string {
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

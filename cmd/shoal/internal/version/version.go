// Package version says which version of the program this is. The file VERSION is the only source of
// its number. Binary, image and chart take it from there, or a test compares them.
package version

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

//go:embed VERSION
var number string

// String returns the version's number, and the commit if the build recorded it.
func String() string {
	text := strings.TrimSpace(number)
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			text += " " + setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			text += " modified"
		}
	}
	return text
}

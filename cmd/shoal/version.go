package main

import (
	"fmt"
	"runtime"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/version"
)

type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(t *terminal.Terminal) error {
	_, err := fmt.Fprintf(t.Out, "shoal %s (%s, %s/%s)\n", version.String(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
	return err
}

package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/version"
)

type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(t *terminal.Terminal) error { return printVersion(t.Out) }

func printVersion(to io.Writer) error {
	_, err := fmt.Fprintf(to, "shoal %s (%s, %s/%s)\n", version.String(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
	return err
}

// versionFlag is --version, which works without a command.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := printVersion(app.Stdout); err != nil {
		return err
	}
	app.Exit(terminal.ExitOK)
	return nil
}

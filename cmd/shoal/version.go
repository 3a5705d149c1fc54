package main

import (
	"fmt"
	"runtime"
)

type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(t *terminal) error {
	_, err := fmt.Fprintf(t.out, "shoal %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

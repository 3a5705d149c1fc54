package main

import (
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// TestMisusedCommandsAreNamed: the error of a wrong call names the command, and its help.
func TestMisusedCommandsAreNamed(t *testing.T) {
	b := newShell(t)
	for call, want := range map[[2]string][2]string{
		{"errors"}:             {`shoal errors: expected "<id>"`, "shoal errors --help tells more."},
		{"run"}:                {"shoal run: missing flags: --url-file=LIST", "shoal run --help"},
		{"cluster", "restore"}: {`shoal cluster restore: expected "<file>"`, "shoal cluster restore --help"},
		{"frob"}:               {"shoal: unexpected argument frob", "shoal --help tells more."},
	} {
		args := call[:1]
		if call[1] != "" {
			args = call[:]
		}
		b.shoal(args...).want(t, terminal.ExitUsage, want[0], want[1])
	}
}

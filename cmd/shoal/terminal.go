package main

import (
	"fmt"
	"io"

	"shoal.dev/shoal/pkg/clock"
)

// usualWidth is that of a terminal that does not know its own.
const usualWidth = 80

// terminal is what a command talks to. Results go to out; progress, notices and errors go to err. columns is the width
// of err when it is a terminal, where a progress line may be redrawn, and 0 when it is not.
type terminal struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	clock   clock.Clock
	columns int
}

// notef writes a line for people, which scripts that read out never see.
func (t *terminal) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(t.err, format+"\n", args...) // nothing can be said when stderr is gone
}

// The exit codes that scripts rely on.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRunFailed   = 3
	exitRunStopped  = 4
	exitNoAccess    = 5
	exitInterrupted = 130
)

// exitError ends the command with a code; text may be empty when everything has been said.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usagef is an error of the command line itself.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

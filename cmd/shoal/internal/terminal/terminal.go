// Package terminal is what a command of the command line talks to. It knows where results, notices
// and errors go, how amounts and tables are printed, and with which code a command ends. It knows
// no command.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"shoal.dev/shoal/pkg/clock"
)

// UsualWidth is that of a terminal that does not know its own.
const UsualWidth = 80

// Terminal is what a command talks to.
type Terminal struct {
	In      io.Reader
	Out     io.Writer // results
	Err     io.Writer // progress, notices and errors
	Clock   clock.Clock
	Columns int // width of Err, where a progress line may be redrawn; 0: it is no terminal
}

// OfProcess is the terminal of this process.
func OfProcess() Terminal {
	t := Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Clock: clock.System{}}
	if columns, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil &&
		os.Getenv("TERM") != "dumb" {
		t.Columns = cmp.Or(columns, UsualWidth)
	}
	return t
}

// Notef writes a line for people, which scripts that read out never see.
func (t *Terminal) Notef(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Err, format+"\n", args...) // nothing can be said when stderr is gone
}

// The exit codes that scripts rely on.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRunFailed   = 3
	ExitRunStopped  = 4
	ExitNoAccess    = 5
	ExitInterrupted = 130
)

// ExitError ends the command with a code.
type ExitError struct {
	Code int
	Text string // "": everything has been said
}

// Error implements error.
func (e *ExitError) Error() string { return e.Text }

// Usagef is an error of the command line itself.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Text: fmt.Sprintf(format, args...)}
}

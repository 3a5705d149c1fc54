// Package terminal is what a command of the command line talks to. It knows where results, notices
// and errors go, how amounts and tables are printed, and with which code a command ends. It knows
// no command.
package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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

// Secret asks for a line that is not shown while it is typed. Where In is no terminal it reads the
// next line of it.
func (t *Terminal) Secret(question string) (string, error) {
	if t.Asks() {
		if _, err := io.WriteString(t.Err, question); err != nil {
			return "", err
		}
		typed, err := term.ReadPassword(int(t.In.(*os.File).Fd()))
		t.Notef("")
		return string(typed), err
	}
	var line []byte
	for one := make([]byte, 1); len(line) < longestSecret; { // not a byte of what follows the line
		n, err := t.In.Read(one)
		if n == 1 && one[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, one[:n]...)
		if errors.Is(err, io.EOF) {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", Usagef("a line has at most %d bytes", longestSecret)
}

// longestSecret bounds a line that is not shown, in bytes.
const longestSecret = 1000

// Asks says whether a person sits before In.
func (t *Terminal) Asks() bool {
	file, ok := t.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// The exit codes that scripts rely on.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRunFailed   = 3
	ExitRunStopped  = 4
	ExitNoAccess    = 5
	ExitGap         = 6 // of shoal audit verify: the first finding
	ExitChanged     = 7
	ExitForked      = 8
	ExitOrder       = 9
	ExitDiffers     = 10 // of shoal billing reconcile
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

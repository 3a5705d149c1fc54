// Package terminal is a command's interface to its user. It knows where results, notices and errors
// go, how amounts and tables are printed, and which exit codes exist. It knows no commands.
package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"shoal.dev/shoal/pkg/clock"
)

// UsualWidth is the width of a terminal that does not know its own.
const UsualWidth = 80

// Terminal holds a command's streams and clock.
type Terminal struct {
	In      io.Reader
	Out     io.Writer // results
	Err     io.Writer // progress, notices and errors
	Clock   clock.Clock
	Columns int // width of Err, where a progress line may be redrawn; 0: not a terminal
}

// OfProcess returns the terminal of this process.
func OfProcess() Terminal {
	t := Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Clock: clock.System{}}
	if columns, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil &&
		os.Getenv("TERM") != "dumb" {
		t.Columns = cmp.Or(columns, UsualWidth)
	}
	return t
}

// Notef writes a line for people, which scripts that read Out never see.
func (t *Terminal) Notef(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Err, format+"\n", args...) // an error of stderr cannot be reported
}

// Secret asks for a line without echo. If In is not a terminal, it reads the next line.
func (t *Terminal) Secret(ctx context.Context, question string) (string, error) {
	if !t.Asks() {
		line, err := t.Line(ctx, longestSecret)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
	fd := int(t.In.(*os.File).Fd())
	shown, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(t.Err, question); err != nil {
		return "", err
	}
	line, err := unlessDone(ctx, func() (string, error) {
		typed, err := term.ReadPassword(fd)
		return string(typed), err
	})
	if ctx.Err() != nil { // the reader is abandoned, and would not restore the echo
		err = errors.Join(err, term.Restore(fd, shown))
	}
	t.Notef("")
	return line, err
}

// longestSecret bounds a secret line, in bytes.
const longestSecret = 1000

// Line reads a line, and not a byte beyond it. At the end of the input it returns what is there,
// and io.EOF.
func (t *Terminal) Line(ctx context.Context, most int) (string, error) {
	return unlessDone(ctx, func() (string, error) {
		var line []byte
		for one := make([]byte, 1); len(line) < most; {
			n, err := t.In.Read(one)
			if n == 1 && one[0] == '\n' {
				return strings.TrimSuffix(string(line), "\r"), nil
			}
			line = append(line, one[:n]...)
			if err != nil {
				return string(line), err
			}
		}
		return "", Usagef("a line has at most %d bytes", most)
	})
}

// unlessDone reads what a person types, unless ctx ends. Then the read continues until the process
// ends: it cannot be cancelled.
func unlessDone(ctx context.Context, read func() (string, error)) (string, error) {
	type typed struct {
		line string
		err  error
	}
	done := make(chan typed, 1)
	go func() {
		line, err := read()
		done <- typed{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case t := <-done:
		return t.line, t.err
	}
}

// Asks says whether In is a terminal with a person.
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
	ExitGap         = 6 // of shoal audit verify: the kind of the first finding
	ExitChanged     = 7
	ExitForked      = 8
	ExitOrder       = 9
	ExitDiffers     = 10 // of shoal billing reconcile
	ExitInterrupted = 130
)

// ExitError ends the command with a code.
type ExitError struct {
	Code int
	Text string // "": everything has been printed
}

// Error implements error.
func (e *ExitError) Error() string { return e.Text }

// Usagef is an error in the use of the command line.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Text: fmt.Sprintf(format, args...)}
}

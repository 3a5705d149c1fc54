package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSecretIsInterrupted: after an interrupted password prompt the terminal echoes again.
func TestSecretIsInterrupted(t *testing.T) {
	person, side := openTerminal(t)
	shows := func() bool {
		is, err := unix.IoctlGetTermios(int(side.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return is.Lflag&unix.ECHO != 0
	}
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		for shows() {
			runtime.Gosched()
		}
		interrupt()
	}()
	terminal := Terminal{In: side, Err: io.Discard}
	if _, err := terminal.Secret(ctx, "Password: "); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !shows() {
		t.Error("the terminal shows nothing any more")
	}
	if _, err := io.WriteString(person, "\n"); err != nil { // ends the pending read
		t.Error(err)
	}
}

// openTerminal makes a terminal: a person's side and a program's side.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK,
		0)); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

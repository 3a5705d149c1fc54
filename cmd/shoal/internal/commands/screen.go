package commands

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// style is the style of a line: parameters of the terminal's SGR sequence.
type style string

// The styles.
const (
	plain  style = ""
	bold   style = "1"
	red    style = "31;1"
	yellow style = "33"
)

// screen is a terminal that a command has to itself. It draws its lines in place, on the alternate
// page; closing restores what was there before.
type screen struct {
	out  io.Writer
	size func() (width, height int)
	// keys returns the next key; false when ctx ended or no more come.
	keys    func(ctx context.Context) (byte, bool)
	restore func() error
}

// Sequences that all terminals of the last decades understand.
const (
	enterPage  = "\x1b[?1049h\x1b[?25l" // the alternate page, no cursor
	leavePage  = "\x1b[?25h\x1b[?1049l"
	toTop      = "\x1b[H"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
)

// openScreen takes over the terminal; close gives it back.
func openScreen(t *terminal.Terminal) (*screen, error) {
	in, isFile := t.In.(*os.File)
	out, alsoFile := t.Out.(*os.File)
	if !isFile || !alsoFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, terminal.Usagef("this needs a terminal; --once prints one frame")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &screen{out: out,
		size: func() (int, int) {
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return terminal.UsualWidth, usualHeight
			}
			return width, height
		},
		keys:    func(ctx context.Context) (byte, bool) { return nextKey(ctx, in) },
		restore: func() error { return term.Restore(int(in.Fd()), before) },
	}
	if _, err := io.WriteString(out, enterPage); err != nil {
		return nil, errors.Join(err, s.restore())
	}
	return s, nil
}

// usualHeight is the height of a terminal that does not know its own.
const usualHeight = 24

// keyWait is how long one poll for a key takes; between polls ctx is checked.
const keyWait = 100 * time.Millisecond

// nextKey waits for a key. It never blocks in a read that nothing could end.
func nextKey(ctx context.Context, in *os.File) (byte, bool) {
	var key [1]byte
	for ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(keyWait.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR) || err == nil && n == 0:
			continue
		case err != nil:
			return 0, false
		}
		if n, err := in.Read(key[:]); n == 1 {
			return key[0], true
		} else if err != nil {
			return 0, false
		}
	}
	return 0, false
}

// close gives the terminal back as it was.
func (s *screen) close() error {
	_, err := io.WriteString(s.out, leavePage)
	return errors.Join(err, s.restore())
}

// awaitEnd returns when q or Ctrl-C is pressed, the terminal is gone, or ctx ends.
func (s *screen) awaitEnd(ctx context.Context) {
	const ctrlC, ctrlD = 3, 4
	for {
		switch key, ok := s.keys(ctx); {
		case !ok, key == 'q', key == 'Q', key == ctrlC, key == ctrlD:
			return
		}
	}
}

// draw replaces what is on the screen, in one write.
func (s *screen) draw(lines []line) error {
	var frame strings.Builder
	frame.WriteString(toTop)
	for i, line := range lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		if line.style != plain {
			frame.WriteString("\x1b[" + string(line.style) + "m" + line.text + "\x1b[0m")
		} else {
			frame.WriteString(line.text)
		}
		frame.WriteString(clearRight)
	}
	frame.WriteString(clearBelow)
	_, err := io.WriteString(s.out, frame.String())
	return err
}

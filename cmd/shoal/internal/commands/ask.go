package commands

import (
	"context"
	"errors"
	"io"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// longestAnswer bounds a line that a person types, in bytes.
const longestAnswer = 1000

// ask asks the person at the terminal for a line. If there is none, the error names --yes.
func ask(ctx context.Context, t *terminal.Terminal, question string) (string, error) {
	if _, err := io.WriteString(t.Err, question); err != nil {
		return "", err
	}
	line, err := t.Line(ctx, longestAnswer)
	switch {
	case ctx.Err() != nil:
		t.Notef("")
		return "", ctx.Err()
	case errors.Is(err, io.EOF) && line != "":
		err = nil
	case errors.Is(err, io.EOF):
		t.Notef("")
		err = terminal.Usagef("nobody answers; --yes goes on without asking")
	}
	return strings.TrimSpace(line), err
}

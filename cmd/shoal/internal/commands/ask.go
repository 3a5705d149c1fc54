package commands

import (
	"errors"
	"io"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// longestAnswer bounds a line that a person types, in bytes.
const longestAnswer = 1000

// ask asks whoever sits at the terminal for a line. Nobody there is an error that names --yes.
func ask(t *terminal.Terminal, question string) (string, error) {
	if _, err := io.WriteString(t.Err, question); err != nil {
		return "", err
	}
	var line []byte
	for one := make([]byte, 1); len(line) < longestAnswer; { // not a byte of what follows the line
		n, err := t.In.Read(one)
		if n == 1 && one[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		line = append(line, one[:n]...)
		if errors.Is(err, io.EOF) && len(line) > 0 {
			break
		}
		if err != nil {
			t.Notef("")
			return "", terminal.Usagef("nobody answers; --yes goes on without asking")
		}
	}
	return strings.TrimSpace(string(line)), nil
}

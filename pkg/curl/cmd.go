package curl

import (
	"regexp"
	"strings"
)

// Marks of the two shells: the start of a word, and the end of a line. Browsers quote with
// apostrophes for bash and never for cmd.
var (
	bashMark = regexp.MustCompile(`[ \t\n]\$?'|\\\r?\n`)
	cmdMark  = regexp.MustCompile(`[ \t\n]\^"|\^[ \t]*\r?\n|\^\\\^"`)
)

// isCmd reports whether a command is written for Windows cmd: its mark comes first. Without a mark,
// both shells read it alike.
func isCmd(command string) bool {
	cmd := cmdMark.FindStringIndex(command)
	if cmd == nil {
		return false
	}
	bash := bashMark.FindStringIndex(command)
	return bash == nil || cmd[0] < bash[0]
}

// cmdWords parses one command like cmd and then the program's start code. Variables (%NAME%) stay
// as they are.
func cmdWords(command string) ([]string, error) {
	line, err := cmdLine(strings.ReplaceAll(command, "\r\n", "\n"))
	if err != nil {
		return nil, err
	}
	if strings.IndexByte(line, 0) >= 0 {
		return nil, invalid("a zero byte in the command is not allowed")
	}
	return arguments(line, doubled(line)), nil
}

// doubled reports whether all backslashes are doubled. Chrome does that, although the program's
// start code undoes it only before a quote. Whoever pastes such a command means what Chrome read.
func doubled(line string) bool {
	for i := 0; i < len(line); i++ {
		if run := backslashes(line[i:]); run > 0 {
			if i += run; run%2 == 1 && (i == len(line) || line[i] != '"') {
				return false
			}
		}
	}
	return strings.HasPrefix(strings.TrimLeft(line, " \t"), "curl ")
}

// backslashes returns the number of backslashes at the beginning.
func backslashes(text string) int { return len(text) - len(strings.TrimLeft(text, `\`)) }

// cmdLine is the first pass: it removes carets, and refuses what only cmd itself could do.
func cmdLine(command string) (string, error) {
	// Chrome once put carets inside plain quotes, too, where cmd does not see them. Whoever pastes
	// such a command means what Chrome meant.
	everywhere := !strings.Contains(command, ` ^"`) && strings.Contains(command, `^\^"`)
	var out strings.Builder
	quoted := false
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == '^' && (!quoted || everywhere):
			if i++; i < len(command) && command[i] == '\n' {
				i++ // the line continues, and the next character is escaped, even a line end
			}
			if i < len(command) {
				out.WriteByte(command[i])
			}
			continue
		case c == '"':
			quoted = !quoted
		case c == '\n':
			if strings.TrimSpace(command[i:]) != "" {
				return "", invalid("exactly one command is needed; a line that goes on ends with ^")
			}
			return out.String(), nil
		case !quoted && strings.IndexByte("&|<>", c) >= 0:
			return "", invalid("exactly one command is needed; what holds %q must be quoted",
				string(c))
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}

// arguments is the second pass: it splits words, and removes quotes and their backslashes.
func arguments(line string, doubled bool) []string {
	var words []string
	var word []byte
	begun, quoted := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if !quoted && (c == ' ' || c == '\t' || c == '\n') {
			if begun {
				words = append(words, string(word))
			}
			word, begun = word[:0], false
			continue
		}
		begun = true
		switch c {
		case '\\':
			run := backslashes(line[i:])
			next, kept := i+run, run
			quote := next < len(line) && line[next] == '"'
			if quote || doubled {
				kept = run / 2
			}
			word = append(word, line[i:i+kept]...)
			if quote && run%2 == 1 {
				word = append(word, '"')
				next++
			}
			i = next - 1
		case '"':
			if quoted && i+1 < len(line) && line[i+1] == '"' {
				word = append(word, '"')
				i++
				continue
			}
			quoted = !quoted
		default:
			word = append(word, c)
		}
	}
	if begun {
		words = append(words, string(word))
	}
	return words
}

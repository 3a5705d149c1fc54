// Package configfile reads the file that stands in for flags. It defines no flags: it takes them
// from the grammar.
package configfile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// maxConfigFile bounds a config file, in bytes.
const maxConfigFile = 1 << 20

// File is the flags that a file sets: one 'key = value' line each. Keys are the flags' names, and
// '#' begins a comment. A flag with several values may have several lines.
type File struct {
	path string
	keys []string // in the order of the file
	line map[string]int
	flag map[string][]string
}

// Read reads a file of flags, of at most maxConfigFile bytes. Its errors name the line.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }() // read-only
	return parse(path, io.LimitReader(f, maxConfigFile))
}

// parse reads 'key = value' lines. A value may stand in double quotes, which keep its spaces and
// '#'.
func parse(path string, r io.Reader) (*File, error) {
	c := &File{path: path, line: map[string]int{}, flag: map[string][]string{}}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		key, value, found := strings.Cut(text, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || key == "" {
			// The line is not quoted: it may hold a password.
			return nil, fmt.Errorf("%s:%d: want 'key = value'", path, number)
		}
		value, err := unquote(value)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", path, number, key, err)
		}
		if _, again := c.line[key]; !again {
			c.keys = append(c.keys, key)
			c.line[key] = number
		}
		c.flag[key] = append(c.flag[key], value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// unquote removes the quotes of a value, or the comment after an unquoted one.
func unquote(value string) (string, error) {
	if !strings.HasPrefix(value, `"`) {
		if at := strings.Index(value, " #"); at >= 0 {
			value = strings.TrimSpace(value[:at])
		}
		return value, nil
	}
	inner, rest, closed := strings.Cut(value[1:], `"`)
	if rest = strings.TrimSpace(rest); !closed || (rest != "" && !strings.HasPrefix(rest, "#")) {
		return "", fmt.Errorf("the quote does not end with the value")
	}
	return inner, nil
}

// Validate refuses keys that are not a flag of any command.
func (c *File) Validate(app *kong.Application) error {
	flags := Flags(app)
	delete(flags, "help")
	delete(flags, "config")
	for _, key := range c.keys {
		flag, known := flags[key]
		if !known {
			return fmt.Errorf("%s:%d: unknown key %q%s", c.path, c.line[key], key,
				didYouMean(key, flags))
		}
		if len(c.flag[key]) > 1 && !flag.IsSlice() && !flag.IsMap() {
			return fmt.Errorf("%s: %q stands there %d times and takes one value", c.path, key,
				len(c.flag[key]))
		}
	}
	return nil
}

// Resolve returns the file's value of a flag, nil if the file has none or the environment has one.
func (c *File) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	values := c.flag[flag.Name]
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	switch len(values) {
	case 0:
		return nil, nil
	case 1:
		return values[0], nil
	}
	if flag.Tag.Sep == -1 {
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = value
		}
		return list, nil
	}
	sep := flag.Tag.Sep
	if flag.IsMap() {
		sep = flag.Tag.MapSep
	}
	return strings.Join(values, string(sep)), nil
}

// Flags are the flags of all commands, by name; the first command's where several share one.
func Flags(app *kong.Application) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	eachFlag(app.Node, func(flag *kong.Flag) {
		if flags[flag.Name] == nil {
			flags[flag.Name] = flag
		}
	})
	return flags
}

// Variables are the variables of the environment that set a flag of any command.
func Variables(app *kong.Application) map[string]bool {
	variables := map[string]bool{}
	eachFlag(app.Node, func(flag *kong.Flag) {
		for _, name := range flag.Envs {
			variables[name] = true
		}
	})
	return variables
}

func eachFlag(node *kong.Node, visit func(*kong.Flag)) {
	for _, flag := range node.Flags {
		visit(flag)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			eachFlag(child, visit)
		}
	}
}

// didYouMean names the nearest flag, if one is near.
func didYouMean(key string, flags map[string]*kong.Flag) string {
	best := Nearest(key, flags)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// Nearest returns the name of the flag most similar to a key, "" if none is similar.
func Nearest(key string, flags map[string]*kong.Flag) string {
	best, distance := "", 1+max(2, len(key)/3)
	for name, flag := range flags {
		d := editDistance(key, name)
		if !flag.Hidden && (d < distance || (d == distance && best != "" && name < best)) {
			best, distance = name, d
		}
	}
	return best
}

// editDistance counts the single-character edits between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

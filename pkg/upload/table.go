package upload

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/utf8text"
)

// table holds the known columns of a file, and the row that is being read.
type table struct {
	names   []string
	byName  map[string]int
	texts   []string // of the row, by column; "": no value
	touched int      // only columns below it may have a text
	row     Row
	// given holds the names in the first row as written. No other column takes one of them.
	given map[string]bool
}

func newTable() *table { return &table{byName: map[string]int{}} }

// has reports whether a column is known.
func (t *table) has(column string) bool {
	_, known := t.byName[column]
	return known
}

// name returns the column with a name, and adds it if it is missing.
func (t *table) name(name string) (int, error) {
	if at, known := t.byName[name]; known {
		return at, nil
	}
	switch {
	case len(t.names) == MaxColumns:
		return 0, refuse("the file has more than %d columns", MaxColumns)
	case name == "":
		return 0, refuse("a column has no name")
	case utf8.RuneCountInString(name) > MaxName:
		return 0, refuse("the name of column %d has more than %d characters", len(t.names)+1,
			MaxName)
	case name[0] == '_':
		return 0, refuse("column %.60q: names that begin with _ are those of the server", name)
	}
	t.names, t.texts = append(t.names, name), append(t.texts, "")
	t.byName[name] = len(t.names) - 1
	return len(t.names) - 1, nil
}

// head takes the names of a first row. A column without a name is named after its place. A repeated
// name gets a number. Empty names at the end are ignored.
func (t *table) head(names []string) error {
	for len(names) > 0 && headIn(names[len(names)-1]) == "" {
		names = names[:len(names)-1]
	}
	t.given = make(map[string]bool, len(names))
	for _, name := range names {
		t.given[headIn(name)] = true
	}
	for at, name := range names {
		if err := t.headColumn(at, headIn(name)); err != nil {
			return err
		}
	}
	return nil
}

// headIn returns the name that a value of a first row gives its column.
func headIn(value string) string { return strings.TrimSpace(plain(value)) }

// plain returns a name without characters that hide others, so that it passes for no other one.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if utf8text.HidesInText(r) {
			return -1
		}
		return r
	}, name)
}

// headColumn adds a column by its name, or by its place if it has no name.
func (t *table) headColumn(at int, name string) error {
	if name != "" && !t.has(name) {
		_, err := t.name(name)
		return err
	}
	if name == "" {
		name = "column_" + strconv.Itoa(at+1)
	}
	free := name
	for n := 2; t.has(free) || t.given[free]; n++ {
		number := "_" + strconv.Itoa(n)
		free = cutName(name, MaxName-len(number)) + number
	}
	_, err := t.name(free)
	return err
}

// cutName returns the beginning of a name, at most most characters.
func cutName(name string, most int) string {
	for at := range name {
		if most--; most < 0 {
			return name[:at]
		}
	}
	return name
}

// namesNothing reports whether no value of a row can name a column.
func namesNothing(row []string) bool {
	return !slices.ContainsFunc(row,
		func(name string) bool { return headIn(name) != "" })
}

// put sets a column's text in the current row. A column without a name in the first row is named
// after its place.
func (t *table) put(row, at int, text string) error {
	if text == "" {
		return nil
	}
	for at >= len(t.names) {
		if err := t.headColumn(len(t.names), ""); err != nil {
			return err
		}
	}
	if len(text) > MaxCell {
		return refuseRow(row, "the value of column %.60q has more than %d bytes", t.names[at],
			MaxCell)
	}
	t.texts[at], t.touched = text, max(t.touched, at+1)
	return nil
}

// endRow returns the row that was read, and begins the next one. The result may be empty.
func (t *table) endRow() Row {
	t.row = t.row[:0]
	for at, text := range t.texts[:t.touched] {
		if text != "" {
			t.row = append(t.row, Cell{t.names[at], text})
			t.texts[at] = ""
		}
	}
	t.touched = 0
	return t.row
}

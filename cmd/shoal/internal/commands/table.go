package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

// document is a row with its keys in the order of the server's JSON.
type document struct {
	keys   []string
	values map[string]json.RawMessage
}

func parseDocument(row json.RawMessage) (document, error) {
	d := document{values: map[string]json.RawMessage{}}
	tokens := json.NewDecoder(bytes.NewReader(row))
	if start, err := tokens.Token(); err != nil || start != json.Delim('{') {
		return d, fmt.Errorf("row: want a JSON object, got %s",
			terminal.Cut(string(row), terminal.WidestCell))
	}
	for tokens.More() {
		key, err := tokens.Token()
		if err != nil {
			return d, fmt.Errorf("row: %w", err)
		}
		var value json.RawMessage
		if err := tokens.Decode(&value); err != nil {
			return d, fmt.Errorf("row: %w", err)
		}
		name, _ := key.(string) // keys of a JSON object are strings, or Token has failed
		d.keys = append(d.keys, name)
		d.values[name] = value
	}
	return d, nil
}

// cell is a value as text: strings without quotes, null as empty text, the rest as JSON.
func cell(value json.RawMessage) string {
	var text string
	switch {
	case len(value) == 0 || string(value) == "null":
		return ""
	case value[0] == '"' && json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}

// sampled is the size of a batch of rows: each batch decides its own columns and widths.
const sampled = 1000

// batches parses rows and yields them, sampled at a time.
func batches(rows iter.Seq2[json.RawMessage, error]) iter.Seq2[[]document, error] {
	return func(yield func([]document, error) bool) {
		var batch []document
		for row, err := range rows {
			var d document
			if err == nil {
				d, err = parseDocument(row)
			}
			if err != nil {
				if len(batch) == 0 || yield(batch, nil) {
					yield(nil, err)
				}
				return
			}
			if batch = append(batch, d); len(batch) == sampled {
				if !yield(batch, nil) {
					return
				}
				batch = batch[:0]
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// columnsOf lists the keys of rows in order of first appearance, the server's own (_…) last.
func columnsOf(rows []document) []string {
	var columns []string
	known := map[string]bool{}
	for _, row := range rows {
		for _, key := range row.keys {
			if !known[key] {
				known[key] = true
				columns = append(columns, key)
			}
		}
	}
	putServersLast(columns)
	return columns
}

// putServersLast moves the keys that only the server writes behind the others.
func putServersLast(columns []string) {
	slices.SortStableFunc(columns, func(a, b string) int {
		switch {
		case model.IsServerKey(a) == model.IsServerKey(b):
			return 0
		case model.IsServerKey(a):
			return 1
		}
		return -1
	})
}

// WriteTable shows what was scraped and where; of the server's keys only _sourceUrl. A batch with
// other columns begins a new table.
func WriteTable(w io.Writer, rows iter.Seq2[json.RawMessage, error]) error {
	var columns []string
	for batch, err := range batches(rows) {
		if err != nil {
			return err
		}
		for _, column := range columnsOf(batch) {
			shown := !model.IsServerKey(column) || column == "_sourceUrl"
			if shown && !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
		}
		putServersLast(columns)
		if err := terminal.PrintTable(w, columns, cellsOf(batch, columns)); err != nil {
			return err
		}
	}
	return nil
}

func cellsOf(rows []document, columns []string) [][]string {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, column := range columns {
			cells[i] = append(cells[i], cell(row.values[column]))
		}
	}
	return cells
}

// Bounds of a sample table.
const (
	sampleRows  = 5
	sampleCell  = 28 // characters
	sampleWidth = 100
)

// writeSample shows the first rows, with as many columns as fit the terminal's width; 0 is a
// missing terminal. The other columns are named.
func writeSample(w io.Writer, width int, rows []json.RawMessage) error {
	var parsed []document
	for _, row := range rows {
		d, err := parseDocument(row)
		if err != nil {
			return err
		}
		parsed = append(parsed, d)
	}
	if width == 0 {
		width = sampleWidth
	}
	columns := columnsOf(parsed)
	parsed = parsed[:min(len(parsed), sampleRows)]
	shown, used := 0, 0
	cells := cellsOf(parsed, columns)
	for i, column := range columns {
		widest := utf8.RuneCountInString(column)
		for _, row := range cells {
			row[i] = terminal.Cut(strings.Join(strings.Fields(terminal.Printable(row[i])), " "),
				sampleCell)
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		if used += min(widest, terminal.WidestCell) + 2; used > width && shown > 0 {
			break
		}
		shown++
	}
	for i := range cells {
		cells[i] = cells[i][:shown]
	}
	if err := terminal.PrintTable(w, columns[:shown], cells); err != nil {
		return err
	}
	if rest := columns[shown:]; len(rest) > 0 {
		_, err := fmt.Fprintf(w, "… and %s: %s\n", terminal.Plural(int64(len(rest)), "column"),
			terminal.Printable(terminal.Cut(strings.Join(rest, ", "), 2*sampleWidth)))
		return err
	}
	return nil
}

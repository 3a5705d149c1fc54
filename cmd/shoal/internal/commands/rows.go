package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Rows is 'shoal rows', which streams a run's rows to the terminal or a program.
type Rows struct {
	Connection
	Job    string `required:"" help:"Id of the run." placeholder:"ID"`
	Format string `default:"table" enum:"table,jsonl,csv" help:"table for people, jsonl and csv for programs."`
	Filter string `help:"Only rows that match, as JSON, such as {\"price\":{\"$gt\":\"10\"}}." placeholder:"JSON"`
	Limit  int64  `help:"Most rows; 0 for all." placeholder:"N"`
}

// Help teaches the command.
func (*Rows) Help() string {
	return `All rows are streamed, whatever their number. jsonl is each row as the server has it, with the keys of the server
(_sourceUrl and others that begin with _). The columns of csv and table are the keys of the first 1,000 rows; csv fails at
the end when later rows had others. Text in csv that a spreadsheet would take for a formula gets an apostrophe before it.

Examples:

  shoal rows --job 66f0c2a1b7d4e8f901234567
  shoal rows --job 66f0c2a1b7d4e8f901234567 --format csv > rows.csv
  shoal rows --job 66f0c2a1b7d4e8f901234567 --format jsonl | jq -r .title`
}

// Run reads the rows.
func (c *Rows) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 0 {
		return terminal.Usagef("--limit: 0 or more")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	rows := client.Rows(ctx, api.RowQuery{JobID: c.Job, Filters: c.Filter, Limit: c.Limit})
	out := bufio.NewWriterSize(t.Out, 64<<10)
	switch c.Format {
	case "jsonl":
		err = writeJSONL(out, rows)
	case "csv":
		err = writeCSV(out, rows)
	default:
		err = WriteTable(out, rows)
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}

func writeJSONL(w io.Writer, rows iter.Seq2[json.RawMessage, error]) error {
	var line bytes.Buffer
	for row, err := range rows {
		if err != nil {
			return err
		}
		line.Reset()
		if err := json.Compact(&line, row); err != nil {
			return fmt.Errorf("row: %w", err)
		}
		line.WriteByte('\n')
		if _, err := w.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Sampled is how many rows decide which columns there are.
const Sampled = 1000

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

// cell is a value as text: strings without quotes, null as nothing, the rest as JSON.
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

// batches parses rows and hands them on, sampled at a time.
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
			if batch = append(batch, d); len(batch) == Sampled {
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

// columnsOf lists the keys of rows in the order in which they first appear, the server's own (_…)
// last.
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
	slices.SortStableFunc(columns, func(a, b string) int { return serverKey(a) - serverKey(b) })
	return columns
}

// serverKey is 1 for a key that only the server writes.
func serverKey(key string) int {
	if strings.HasPrefix(key, "_") {
		return 1
	}
	return 0
}

// harmless keeps a spreadsheet from taking scraped text for a formula: such text gets an apostrophe
// before it. Numbers stay as they are.
func harmless(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func writeCSV(w io.Writer, rows iter.Seq2[json.RawMessage, error]) error {
	table := csv.NewWriter(w)
	var columns, missed []string
	for batch, err := range batches(rows) {
		if err != nil {
			table.Flush()
			return err
		}
		if columns == nil {
			columns = columnsOf(batch)
			if err := table.Write(columns); err != nil {
				return err
			}
		}
		for _, key := range columnsOf(batch) {
			if !slices.Contains(columns, key) && !slices.Contains(missed, key) {
				missed = append(missed, key)
			}
		}
		for _, row := range batch {
			record := make([]string, len(columns))
			for i, column := range columns {
				record[i] = harmless(cell(row.values[column]))
			}
			if err := table.Write(record); err != nil {
				return err
			}
		}
	}
	table.Flush()
	if err := table.Error(); err != nil {
		return err
	}
	if len(missed) > 0 {
		return fmt.Errorf("the csv lacks keys that no row among the first %d has: %s (use "+
			"--format jsonl)", Sampled,
			strings.Join(missed, ", "))
	}
	return nil
}

// WriteTable shows what was scraped and where; of the server's keys only _sourceUrl.
func WriteTable(w io.Writer, rows iter.Seq2[json.RawMessage, error]) error {
	var columns []string
	for batch, err := range batches(rows) {
		if err != nil {
			return err
		}
		if columns == nil {
			columns = slices.DeleteFunc(columnsOf(batch), func(key string) bool {
				return strings.HasPrefix(key, "_") && key != "_sourceUrl"
			})
		}
		cells := make([][]string, len(batch))
		for i, row := range batch {
			for _, column := range columns {
				cells[i] = append(cells[i], cell(row.values[column]))
			}
		}
		if err := terminal.PrintTable(w, columns, cells); err != nil {
			return err
		}
	}
	return nil
}

package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

// Diff is 'shoal diff', which compares the rows of two runs.
type Diff struct {
	Connection
	From   string   `arg:"" help:"Id of the older run."`
	To     string   `arg:"" help:"Id of the newer run of the same scraper."`
	By     []string `sep:"none" help:"Fields that identify a row, such as sku, separated by commas as in csv." placeholder:"NAME,..."`
	Fields []string `sep:"none" help:"Compare only these fields, separated by commas as in csv." placeholder:"NAME,..."`
	Format string   `default:"text" enum:"text,jsonl,csv" help:"text for people, jsonl and csv for programs."`
	JSON   bool     `help:"Print the server's answer as JSON, with the sums and the first 1,000 changes."`
	Out    string   `short:"o" help:"File to write, which appears only when complete; by default standard output." placeholder:"FILE"`
}

// Help returns the command's help text.
func (*Diff) Help() string {
	return `Rows of the two runs are matched by a key. --by names its fields. By default the key is the address, if each page has one
row. Otherwise it is a field such as sku, ean, id or url whose value differs in every row, or else the address and the
position on the page.

+ marks an added row, - a removed one, ~ a changed one with its old and new values.

Examples:

  shoal diff 66f0c2a1b7d4e8f901234567 66f1a9b2c8e5f90123456789
  shoal diff 66f0c2a1b7d4e8f901234567 66f1a9b2c8e5f90123456789 --by sku --fields price,stock
  shoal diff 66f0c2a1b7d4e8f901234567 66f1a9b2c8e5f90123456789 --format jsonl | jq .after.price`
}

// Run compares the runs.
func (c *Diff) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.JSON && c.Format != "text" {
		return terminal.Usagef("--json and --format %s are two formats: give one", c.Format)
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	query := api.DiffQuery{From: c.From, To: c.To, Key: c.By, Fields: c.Fields}
	if c.Format != "text" {
		return writeTo(t, c.Out, func(w io.Writer) error {
			return client.ExportDiff(ctx, query, c.Format, w)
		})
	}
	limit := 1
	if c.JSON {
		limit = api.MaxChanges
	}
	diff, err := client.Diff(ctx, query, limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeTo(t, c.Out, func(w io.Writer) error { return terminal.PrintJSON(w, diff) })
	}
	err = writeTo(t, c.Out, func(w io.Writer) error {
		for change, err := range client.Changes(ctx, query) {
			if err == nil {
				err = writeChange(w, change, diff.Value.Key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sums := diff.Value.Summary
	t.Notef("%s added, %s removed, %s changed, %s as before", terminal.Count(sums.Added),
		terminal.Count(sums.Removed), terminal.Count(sums.Changed),
		terminal.Count(sums.Unchanged))
	return nil
}

// writeChange writes a line about a row's change, and one for each changed value.
func writeChange(w io.Writer, change api.RowChange, key []string) error {
	sign, row := "~", change.After
	switch change.Change {
	case "ADDED":
		sign = "+"
	case "REMOVED":
		sign, row = "-", change.Before
	}
	now, err := parseDocument(row)
	if err != nil {
		return err
	}
	text := sign + " " + nameRow(now, key) + "\n"
	if sign == "~" {
		before, err := parseDocument(change.Before)
		if err != nil {
			return err
		}
		for _, field := range change.Changed {
			text += fmt.Sprintf("    %s: %s -> %s\n", terminal.Printable(field),
				shownValue(before.values[field]), shownValue(now.values[field]))
		}
	}
	_, err = io.WriteString(w, text)
	return err
}

// nameRow names a row for people: by its key, or else by its address and first value.
func nameRow(row document, key []string) string {
	var parts []string
	for _, field := range key {
		parts = append(parts, terminal.Printable(field)+"="+shownValue(row.values[field]))
	}
	if len(key) > 0 {
		return strings.Join(parts, " ")
	}
	first := ""
	for _, name := range row.keys {
		if !model.IsServerKey(name) {
			first = terminal.Printable(name) + "=" + shownValue(row.values[name])
			break
		}
	}
	return strings.TrimSpace(cell(row.values["_sourceUrl"]) + " " + first)
}

// shownValue is a value in short form for a line; no value is a dash.
func shownValue(value json.RawMessage) string {
	return cmp.Or(terminal.Cut(terminal.Printable(cell(value)), terminal.WidestCell), "-")
}

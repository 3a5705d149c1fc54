package commands

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/profile"
)

// Profile is 'shoal profile', which describes the fields of a run's rows.
type Profile struct {
	Connection
	ID   string `arg:"" help:"Id of the run."`
	JSON bool   `help:"Print the fields as JSON, as the server returns them."`
}

// Help returns the command's help text.
func (*Profile) Help() string {
	return `Each line is a field. It shows how many rows have a value, the types, the lowest and highest number, the number of
distinct values (~ marks an estimate), and an example. For an ended run, standard error then shows what is odd compared
with earlier runs of its scraper.

Examples:

  shoal profile 66f0c2a1b7d4e8f901234567
  shoal profile 66f0c2a1b7d4e8f901234567 --json | jq '.fields[] | select(.fillRate < 0.9) | .name'`
}

// Run prints the profile.
func (c *Profile) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	of, err := client.Profile(ctx, c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, of)
	}
	err = writeTo(t, "", func(w io.Writer) error { return writeProfile(w, of.Value) })
	if err != nil {
		return err
	}
	t.Notef("%s", terminal.Plural(of.Value.Rows, "row"))
	if of.Value.MoreFields {
		t.Notef("there are more fields")
	}
	job, err := findJob(ctx, client, c.ID)
	if err != nil || !job.Final() {
		return err
	}
	return noteOddities(ctx, t, client, c.ID)
}

// writeProfile writes a line per field.
func writeProfile(w io.Writer, of api.RunProfile) error {
	var rows [][]string
	for _, f := range of.Fields {
		distinct := terminal.Count(f.Distinct)
		if !f.DistinctExact {
			distinct = "~" + distinct
		}
		example := ""
		if len(f.Examples) > 0 {
			example = terminal.Cut(cell(f.Examples[0]), terminal.WidestCell)
		}
		rows = append(rows, []string{f.Name, strconv.FormatFloat(100*f.FillRate, 'f', 1, 64) + "%",
			nameTypes(f.Types), shownNumber(f.Min), shownNumber(f.Max), distinct, example})
	}
	return terminal.PrintTable(w, []string{"FIELD", "FILLED", "TYPES", "MIN", "MAX", "DISTINCT",
		"EXAMPLE"}, rows)
}

// nameTypes lists the types of a field's values, most frequent first.
func nameTypes(types map[string]int64) string {
	names := slices.Sorted(maps.Keys(types))
	slices.SortStableFunc(names, func(a, b string) int { return int(types[b] - types[a]) })
	return strings.Join(names, ", ")
}

// shownNumber formats a number in full; nil is empty.
func shownNumber(number *float64) string {
	if number == nil {
		return ""
	}
	return strconv.FormatFloat(*number, 'f', -1, 64)
}

// noteOddities prints how a run differs from the runs before it.
func noteOddities(ctx context.Context, t *terminal.Terminal, client *api.Client, job string) error {
	found, err := client.Oddities(ctx, job)
	if err != nil {
		return fmt.Errorf("compare with the runs before: %w", err)
	}
	for _, odd := range found.Value.Oddities {
		t.Notef("odd: %s", odd.Text)
	}
	switch before := len(found.Value.ComparedWith); {
	case len(found.Value.Oddities) > 0:
	case before < profile.FewestBefore:
		t.Notef("too few runs before it to tell what is odd: %d of %d", before,
			profile.FewestBefore)
	default:
		t.Notef("nothing is odd beside %d runs before", before)
	}
	return nil
}

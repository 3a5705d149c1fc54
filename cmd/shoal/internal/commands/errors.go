package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/fault"
)

// Errors is 'shoal errors', which sums up why links of a run failed.
type Errors struct {
	Connection
	ID   string `arg:"" help:"Id of the run."`
	Code string `help:"List the links with this code instead, one address per line." placeholder:"CODE"`
	JSON bool   `help:"Print the errors as JSON, as the server returns them."`
}

// Help returns the command's help text.
func (*Errors) Help() string {
	return `It counts the failed links by reason, each with an example and advice.

Examples:

  shoal errors 66f0c2a1b7d4e8f901234567
  shoal errors 66f0c2a1b7d4e8f901234567 --code timeout > again.txt     a list to run again`
}

// kindOfError groups the errors with one code, and one status for codes that stand for statuses.
type kindOfError struct {
	code, text string
	status     int // 0 without one
	count      int64
	example    string
}

// Run sums up the errors.
func (c *Errors) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	job, err := findJob(ctx, client, c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return printErrors(ctx, t, client, job)
	}
	return writeTo(t, "", func(w io.Writer) error {
		if c.Code != "" {
			return c.list(ctx, w, client, job)
		}
		kinds, err := sumErrors(ctx, client, job)
		if err != nil {
			return err
		}
		if len(kinds) == 0 {
			t.Notef("no link of the run failed")
		}
		return writeErrors(w, kinds)
	})
}

// list writes the addresses of the links with a code.
func (c *Errors) list(ctx context.Context, w io.Writer, client *api.Client, job *api.Job) error {
	for link, err := range client.JobErrors(ctx, job) {
		if err != nil {
			return err
		}
		if link.Code != c.Code {
			continue
		}
		if _, err := fmt.Fprintln(w, terminal.Printable(link.URL)); err != nil {
			return err
		}
	}
	return nil
}

// sumErrors counts a run's errors by kind, most frequent first.
func sumErrors(ctx context.Context, client *api.Client, job *api.Job) ([]*kindOfError, error) {
	kinds := map[kindOfError]*kindOfError{}
	for link, err := range client.JobErrors(ctx, job) {
		if err != nil {
			return nil, err
		}
		key := kindOfError{code: link.Code}
		if fault.Code(link.Code) == fault.PageStatus && link.Status != nil {
			key.status = *link.Status
		}
		kind := kinds[key]
		if kind == nil {
			kind = &kindOfError{code: key.code, status: key.status, text: link.Error,
				example: link.URL}
			kinds[key] = kind
		}
		kind.count++
	}
	var sorted []*kindOfError
	for _, kind := range kinds {
		sorted = append(sorted, kind)
	}
	slices.SortFunc(sorted, func(a, b *kindOfError) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.code, b.code),
			cmp.Compare(a.status, b.status))
	})
	return sorted, nil
}

func writeErrors(w io.Writer, kinds []*kindOfError) error {
	told := map[string]bool{}
	for i, kind := range kinds {
		code := kind.code
		if kind.status != 0 {
			code = fmt.Sprintf("%s %d", code, kind.status)
		}
		text := fmt.Sprintf("%s  %s: %s\n", terminal.Plural(kind.count, "link"), code,
			terminal.Printable(kind.text))
		text += "  for example " + terminal.Printable(kind.example) + "\n"
		advice := fault.Advice(fault.Code(kind.code), kind.status)
		if advice != "" && !told[advice] {
			text += "  " + advice + "\n"
			told[advice] = true
		}
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// printErrors writes a run's errors as one array, each as the server sends it.
func printErrors(ctx context.Context, t *terminal.Terminal, client *api.Client,
	job *api.Job) error {
	return writeTo(t, "", func(w io.Writer) error {
		before := "[\n  "
		for link, err := range client.JobErrors(ctx, job) {
			if err != nil {
				return err
			}
			item, err := json.MarshalIndent(link.JSON, "  ", "  ")
			if err != nil {
				return fmt.Errorf("error of a link: %w", err)
			}
			if _, err := io.WriteString(w, before+string(item)); err != nil {
				return err
			}
			before = ",\n  "
		}
		if before[0] == '[' {
			_, err := io.WriteString(w, "[]\n")
			return err
		}
		_, err := io.WriteString(w, "\n]\n")
		return err
	})
}

package commands

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// ReExtract is 'shoal re-extract', which makes a run from the kept bodies of another one.
type ReExtract struct {
	Connection
	Job    string   `arg:"" help:"Id of an ended run whose scraper kept bodies."`
	Field  []string `sep:"none" placeholder:"NAME=SELECTOR" help:"A field of each row, as in 'shoal run', instead of the scraper's fields; repeatable."`
	Follow bool     `short:"f" help:"Show progress until the run ends."`
	JSON   bool     `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*ReExtract) Help() string {
	return `The kept pages of the run are read again. No site is fetched and nothing is charged. The scraper is used as it is now, or
with the given fields, which are not saved.

Example:

  shoal re-extract 66f0c2a1b7d4e8f901234567 --field title=h1 --field 'price=.price' --follow

It prints the new run's id. With --follow the exit code is 0 if the run COMPLETED, 3 if it FAILED, 4 if it was
STOPPED.`
}

// Run makes the run.
func (c *ReExtract) Run(ctx context.Context, t *terminal.Terminal) error {
	fields, err := parseFields(c.Field)
	if err != nil {
		return err
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	job, err := client.Job(ctx, c.Job)
	if err != nil {
		return err
	}
	if job == nil {
		return fmt.Errorf("there is no run %s", c.Job)
	}
	answer, err := client.ReExtract(ctx, job.ScraperID, api.ReExtract{JobID: c.Job,
		ItemsConfig: fields})
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.PrintJSON(t.Out, answer)
	} else {
		_, err = fmt.Fprintln(t.Out, answer.Value.JobID)
	}
	if err != nil || !c.Follow {
		return err
	}
	return Follow(ctx, t, client, answer.Value.JobID, job.TotalLinks)
}

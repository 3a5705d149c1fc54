package commands

import (
	"context"
	"net/http"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Stop is 'shoal stop', which ends a run and keeps what it has stored.
type Stop struct {
	Connection
	ID   string `arg:"" help:"Id of a run or of a scraper."`
	JSON bool   `help:"Print the stopped run as the server's JSON."`
}

// Help returns the command's help text.
func (*Stop) Help() string {
	return `The run fetches no new pages. Pages already fetched are still stored and charged, for which the command waits up to 10 s.
Stored rows stay. Stopping a run that is not running changes nothing.

Example:

  shoal stop 66f0c2a1b7d4e8f901234567`
}

// Run stops the run.
func (c *Stop) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	scraper, isRun := c.ID, false
	_, err = client.Scraper(ctx, c.ID)
	if api.IsStatus(err, http.StatusNotFound) {
		job, err := findJob(ctx, client, c.ID)
		if err != nil {
			return err
		}
		if job.Final() {
			return c.show(t, job)
		}
		scraper, isRun = job.ScraperID, true
	} else if err != nil {
		return err
	}
	if err := client.StopScraper(ctx, scraper); err != nil {
		return err
	}
	if isRun {
		job, err := findJob(ctx, client, c.ID)
		if err != nil {
			return err
		}
		return c.show(t, job)
	}
	newest, err := client.Jobs(ctx, api.JobFilter{ScraperID: scraper}, 0, 1)
	if err != nil {
		return err
	}
	if jobs := newest.Value.Content; len(jobs) == 1 {
		return c.show(t, &jobs[0])
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, nil)
	}
	t.Notef("The scraper has never run.")
	return nil
}

func (c *Stop) show(t *terminal.Terminal, job *api.Job) error {
	if c.JSON {
		return terminal.PrintJSON(t.Out, job.JSON)
	}
	t.Notef("%s", outcome(job))
	return nil
}

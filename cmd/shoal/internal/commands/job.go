package commands

import (
	"context"
	"strconv"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Job is 'shoal job', which shows or follows one run.
type Job struct {
	Connection
	ID     string `arg:"" help:"Id of the run."`
	Follow bool   `short:"f" help:"Show progress until the run ends."`
	Errors bool   `help:"List the links that failed."`
	JSON   bool   `help:"Print the record, or the errors, as JSON."`
}

// Help returns the command's help text.
func (*Job) Help() string {
	return `Examples:

  shoal job 66f0c2a1b7d4e8f901234567
  shoal job 66f0c2a1b7d4e8f901234567 --follow       progress until it ends; Ctrl-C stops following, not the run
  shoal job 66f0c2a1b7d4e8f901234567 --errors

The exit code is 0 if the run COMPLETED or has not ended, 3 if it FAILED, 4 if it was STOPPED.`
}

// Run shows one run.
func (c *Job) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	job, err := findJob(ctx, client, c.ID)
	if err != nil {
		return err
	}
	var followed error
	if c.Follow && !job.Final() {
		// The run's result comes last, as the exit code, after the errors that were asked for.
		if followed = Follow(ctx, t, client, job.ID, job.TotalLinks); ctx.Err() != nil {
			return followed
		}
		if job, err = findJob(ctx, client, c.ID); err != nil {
			return err
		}
	}
	if c.Errors {
		err = c.showErrors(ctx, t, client, job)
	} else {
		err = c.show(t, job)
	}
	if err != nil {
		return err
	}
	if followed != nil {
		return followed
	}
	return verdict(job)
}

// findJob returns the record of a run, or an error if there is none.
func findJob(ctx context.Context, client *api.Client, id string) (*api.Job, error) {
	job, err := client.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	if job == nil {
		return nil, &terminal.ExitError{Code: terminal.ExitFailed,
			Text: "no run " + id + "; `shoal jobs` lists them"}
	}
	return job, nil
}

func (c *Job) show(t *terminal.Terminal, job *api.Job) error {
	if c.JSON {
		return terminal.PrintJSON(t.Out, job.JSON)
	}
	pairs := [][]string{
		{"run", job.ID}, {"scraper", job.ScraperID}, {"group", job.GroupID}, {"state", job.State},
		{"started", terminal.Moment(job.Started)}, {"finished", terminal.Moment(job.Finished)},
		{"links", terminal.Count(job.TotalLinks)}, {"pages", terminal.Count(job.TotalRequests)},
		{"rows", terminal.Count(job.ItemsQuantity)},
		{"failed links", terminal.Count(job.ErrorLinks)}, {"stop reason", job.StopReason},
		{"message", job.ErrorMessage},
	}
	if job.Duration != nil {
		pairs = append(pairs, []string{"took", terminal.Lasted(*job.Duration)})
	}
	pairs = append(pairs, []string{"cost", cost(job)})
	return terminal.PrintPairs(t.Out, pairs)
}

func (c *Job) showErrors(ctx context.Context, t *terminal.Terminal, client *api.Client,
	job *api.Job) error {
	if c.JSON {
		return printErrors(ctx, t, client, job)
	}
	var failed []api.LinkError
	for link, err := range client.JobErrors(ctx, job) {
		if err != nil {
			return err
		}
		failed = append(failed, link)
	}
	rows := make([][]string, len(failed))
	for i, link := range failed {
		status := "-"
		if link.Status != nil {
			status = strconv.Itoa(*link.Status)
		}
		rows[i] = []string{status, link.Code, link.Error, link.URL}
	}
	return terminal.PrintTable(t.Out, []string{"STATUS", "CODE", "ERROR", "LINK"}, rows)
}

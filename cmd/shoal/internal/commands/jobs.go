package commands

import (
	"context"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Jobs is 'shoal jobs', which lists runs, newest first.
type Jobs struct {
	Connection
	Group   string `help:"Only runs of this group, by name or id." placeholder:"GROUP"`
	Scraper string `help:"Only runs of this scraper." placeholder:"ID"`
	State   string `default:"" enum:",PENDING,RUNNING,COMPLETED,FAILED,STOPPED" help:"Only runs in this state: PENDING, RUNNING, COMPLETED, FAILED or STOPPED." placeholder:"STATE"`
	Limit   int    `default:"20" help:"Most runs to list, up to 200."`
	JSON    bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Jobs) Help() string {
	return `Examples:

  shoal jobs
  shoal jobs --state RUNNING
  shoal jobs --json | jq -r '.content[].id'`
}

// Run lists the runs.
func (c *Jobs) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > 200 {
		return terminal.Usagef("--limit: 1 to 200")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	filter := api.JobFilter{ScraperID: c.Scraper, State: c.State}
	if c.Group != "" {
		group, err := needGroup(ctx, client, c.Group)
		if err != nil {
			return err
		}
		filter.GroupID = group.ID
	}
	history, err := client.Jobs(ctx, filter, 0, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, history)
	}
	jobs, total := history.Value.Content, history.Value.TotalElements
	rows := make([][]string, len(jobs))
	for i := range jobs {
		rows[i] = jobRow(&jobs[i])
	}
	if err := terminal.PrintTable(t.Out, jobHeader(), rows); err != nil {
		return err
	}
	if int64(len(jobs)) < total {
		t.Notef("%d of %s", len(jobs), terminal.Plural(total, "run"))
	}
	return nil
}

func jobHeader() []string {
	return []string{"RUN", "STATE", "STARTED (UTC)", "TOOK", "LINKS", "PAGES", "ROWS", "FAILED",
		"COST", "REASON"}
}

func jobRow(job *api.Job) []string {
	took := ""
	if job.Duration != nil {
		took = terminal.Lasted(*job.Duration)
	}
	reason := job.StopReason
	if reason == "" {
		reason = job.ErrorMessage
	}
	return []string{job.ID, job.State, terminal.Moment(job.Started), took,
		terminal.Count(job.TotalLinks), terminal.Count(job.TotalRequests),
		terminal.Count(job.ItemsQuantity), terminal.Count(job.ErrorLinks),
		cost(job), reason}
}

// cost is what a run was charged, "" for a run of a group that is shared with the caller.
func cost(job *api.Job) string {
	if job.ChargedMicros == nil {
		return ""
	}
	return terminal.Euros(*job.ChargedMicros)
}

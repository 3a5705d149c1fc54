package main

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/api"
)

type jobsCommand struct {
	connectFlags
	Group   string `help:"Only runs of this group, by name or id." placeholder:"GROUP"`
	Scraper string `help:"Only runs of this scraper." placeholder:"ID"`
	State   string `default:"" enum:",PENDING,RUNNING,COMPLETED,FAILED,STOPPED" help:"Only runs in this state: PENDING, RUNNING, COMPLETED, FAILED or STOPPED." placeholder:"STATE"`
	Limit   int    `default:"20" help:"Most runs to list, up to 200."`
	JSON    bool   `help:"Print the records as JSON."`
}

// Help teaches the command.
func (*jobsCommand) Help() string {
	return `Examples:

  shoal jobs
  shoal jobs --state RUNNING
  shoal jobs --json | jq -r '.[].id'`
}

// Run lists the runs.
func (c *jobsCommand) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 || c.Limit > 200 {
		return usagef("--limit: 1 to 200")
	}
	client, err := c.client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	filter := api.JobFilter{ScraperID: c.Scraper, State: c.State}
	if c.Group != "" {
		group, err := findGroup(ctx, client, c.Group)
		if err != nil {
			return err
		}
		if group == nil {
			return &exitError{code: exitFailed, text: fmt.Sprintf("no group %q", c.Group)}
		}
		filter.GroupID = group.ID
	}
	jobs, total, err := client.Jobs(ctx, filter, 0, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, jobs)
	}
	rows := make([][]string, len(jobs))
	for i := range jobs {
		rows[i] = jobRow(&jobs[i])
	}
	if err := printTable(t.out, jobHeader(), rows); err != nil {
		return err
	}
	if int64(len(jobs)) < total {
		t.notef("%d of %s", len(jobs), plural(total, "run"))
	}
	return nil
}

func jobHeader() []string {
	return []string{"RUN", "STATE", "STARTED (UTC)", "TOOK", "LINKS", "PAGES", "ROWS", "FAILED", "COST", "REASON"}
}

func jobRow(job *api.Job) []string {
	took := ""
	if job.Duration != nil {
		took = lasted(*job.Duration)
	}
	reason := job.StopReason
	if reason == "" {
		reason = job.ErrorMessage
	}
	return []string{job.ID, job.State, moment(job.Started), took, count(job.TotalLinks), count(job.TotalRequests),
		count(job.ItemsQuantity), count(job.ErrorLinks), euros(job.ChargedMicros), reason}
}

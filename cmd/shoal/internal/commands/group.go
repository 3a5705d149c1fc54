package commands

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Groups is 'shoal group', what is done with all scrapers of a group.
type Groups struct {
	Run  GroupRun  `cmd:"" help:"Launch all scrapers of a group."`
	Stop GroupStop `cmd:"" help:"Stop all runs of a group."`
}

// GroupRun is 'shoal group run'.
type GroupRun struct {
	Connection
	Group     string `arg:"" help:"Id or name of a group."`
	MaxCharge *int64 `name:"max-charge" placeholder:"MICROS" help:"Stop the runs before all together cost more, in micros, millionths of a euro."`
	JSON      bool   `help:"Print the server's answer as JSON."`
}

// Help teaches the command.
func (*GroupRun) Help() string {
	return `Each scraper that can run is launched, all in one step. The others are listed, each with the reason. With --max-charge
each run may cost an equal part.

Examples:

  shoal group run shops
  shoal group run shops --max-charge 5000000
  shoal group run shops --json | jq -r '.jobs[].jobId'

It prints the ids of the runs.`
}

// Run launches the group.
func (c *GroupRun) Run(ctx context.Context, t *terminal.Terminal) error {
	return onGroup(ctx, t, &c.Connection, c.Group, c.JSON, "launched",
		func(client *api.Client, id string) (api.Answer[api.GroupRuns], error) {
			return client.RunGroup(ctx, id, c.MaxCharge)
		})
}

// GroupStop is 'shoal group stop'.
type GroupStop struct {
	Connection
	Group string `arg:"" help:"Id or name of a group."`
	JSON  bool   `help:"Print the server's answer as JSON."`
}

// Help teaches the command.
func (*GroupStop) Help() string {
	return `The runs take nothing new; pages that were already fetched are still stored and charged, and what is stored stays.

Example:

  shoal group stop shops

It prints the ids of the runs that it stopped.`
}

// Run stops the group.
func (c *GroupStop) Run(ctx context.Context, t *terminal.Terminal) error {
	return onGroup(ctx, t, &c.Connection, c.Group, c.JSON, "stopped",
		func(client *api.Client, id string) (api.Answer[api.GroupRuns], error) {
			return client.StopGroup(ctx, id)
		})
}

// onGroup makes a call about a group and prints what became of its scrapers.
func onGroup(ctx context.Context, t *terminal.Terminal, at *Connection, name string, asJSON bool,
	did string, call func(*api.Client, string) (api.Answer[api.GroupRuns], error)) error {
	client, err := at.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	group, err := needGroup(ctx, client, name)
	if err != nil {
		return err
	}
	answer, err := call(client, group.ID)
	if err != nil {
		return err
	}
	if asJSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	runs := answer.Value
	for _, job := range runs.Jobs {
		if _, err := fmt.Fprintln(t.Out, job.JobID); err != nil {
			return err
		}
	}
	for _, skipped := range runs.Skipped {
		t.Notef("scraper %s: %s", skipped.ScraperID, skipped.Reason)
	}
	t.Notef("%s %s, %s skipped", terminal.Plural(int64(len(runs.Jobs)), "run"), did,
		terminal.Plural(int64(runs.SkippedTotal), "scraper"))
	return nil
}

package commands

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Groups is 'shoal group', the commands for all scrapers of a group.
type Groups struct {
	Run  GroupRun  `cmd:"" help:"Launch all scrapers of a group."`
	Stop GroupStop `cmd:"" help:"Stop all runs of a group."`
	// StartType sets when the group starts automatically.
	StartType GroupStartType `cmd:"" help:"Set when a group starts automatically."`
}

// GroupRun is 'shoal group run'.
type GroupRun struct {
	Connection
	Group     string `arg:"" help:"Id or name of a group."`
	MaxCharge *int64 `name:"max-charge" placeholder:"MICROS" help:"Stop the runs before they cost more than this together, in micros (millionths of a euro)."`
	JSON      bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*GroupRun) Help() string {
	return `All scrapers that can run are launched in one step. The others are listed with the reason. --max-charge is divided
equally among the runs.

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

// Help returns the command's help text.
func (*GroupStop) Help() string {
	return `The runs fetch no new pages. Pages already fetched are still stored and charged, and stored rows stay.

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

// onGroup makes a call about a group and prints the result for each scraper.
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

// GroupStartType is 'shoal group start-type'.
type GroupStartType struct {
	Connection
	Group string `arg:"" help:"Id or name of a group."`
	Type  string `arg:"" enum:"MANUAL,DAILY,WEEKLY,NONE" help:"MANUAL, DAILY, WEEKLY or NONE."`
	JSON  bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*GroupStartType) Help() string {
	return `DAILY and WEEKLY (Mondays) start the group's scrapers between 00:00 and 06:00, at a minute chosen for the group. A
scraper's own schedule takes precedence. NONE pauses all starts, MANUAL only those of the group.

Example:

  shoal group start-type shops DAILY

It prints each scraper with its next start.`
}

// Run sets the start type.
func (c *GroupStartType) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	group, err := needGroup(ctx, client, c.Group)
	if err != nil {
		return err
	}
	answer, err := client.PutStartType(ctx, group.ID, c.Type)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	for _, s := range answer.Value {
		next := "by hand"
		if s.NextStart != nil {
			next = *s.NextStart
		}
		if _, err := fmt.Fprintln(t.Out, s.ScraperID, next); err != nil {
			return err
		}
	}
	return nil
}

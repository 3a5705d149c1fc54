package commands

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Estimate is 'shoal estimate', which says what a run will probably cost.
type Estimate struct {
	Connection
	Scraper string `arg:"" help:"Name or id of a scraper."`
	Links   int    `placeholder:"N" help:"Number of addresses of the run; by default that of the scraper, or of its newest list."`
	JSON    bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Estimate) Help() string {
	return `The estimate is based on the cost of the scraper's newest runs. Without any, it is the whole possible range. It is not a
cap; to cap the cost, launch with --max-charge.

Examples:

  shoal estimate books
  shoal estimate 66f0c2a1b7d4e8f901234567 --links 250000`
}

// Run asks for the estimate.
func (c *Estimate) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Links < 0 {
		return terminal.Usagef("--links: 1 or more")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	scraper, err := findScraper(ctx, client, c.Scraper)
	if err != nil {
		return err
	}
	answer, err := client.Estimate(ctx, scraper.Value.ID, c.Links)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	e := answer.Value
	cost := terminal.Euros(e.MaxMicros)
	if e.MinMicros < e.MaxMicros {
		cost = terminal.Euros(e.MinMicros) + " to " + cost
	}
	if _, err := fmt.Fprintf(t.Out, "%s, about %s: %s\n", terminal.Plural(e.Links, "link"),
		terminal.Plural(e.Pages, "page"), cost); err != nil {
		return err
	}
	by := "no run yet: this is the range of all that may be"
	if e.RunsConsidered > 0 {
		by = "by " + terminal.Plural(e.RunsConsidered, "run")
	}
	if !e.Affordable {
		by += "; the balance of " + terminal.Euros(e.BalanceMicros) + " does not pay for the most"
	}
	t.Notef("%s", by)
	return nil
}

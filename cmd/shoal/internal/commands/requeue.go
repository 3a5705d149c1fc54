package commands

import (
	"context"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Requeue is 'shoal requeue', which runs the failed links of a run again, as an operator.
type Requeue struct {
	Connection
	Job       string `arg:"" help:"Id of an ended run."`
	MaxCharge *int64 `name:"max-charge" placeholder:"MICROS" help:"Stop the run before it costs more than this, in micros (millionths of a euro)."`
	JSON      bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Requeue) Help() string {
	return `It is for operators. The run belongs to the customer, who pays for it. It uses the scraper's current recipe.

Example:

  shoal requeue 66f0c2a1b7d4e8f901234567

It prints the new run's id.`
}

// Run launches the run.
func (c *Requeue) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Requeue(ctx, c.Job, c.MaxCharge)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	t.Notef("%s queued", terminal.Plural(answer.Value.LinksQueued, "link"))
	_, err = fmt.Fprintln(t.Out, answer.Value.JobID)
	return err
}

package commands

import (
	"context"
	"fmt"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Billing is 'shoal billing', an operator's view of what runs cost.
type Billing struct {
	Recount   Recount   `cmd:"" help:"Compute every run's charge again from its page records and compare it with the ledger."`
	Reconcile Reconcile `cmd:"" help:"Compare the ledger with the payment provider, with itself and with the page records."`
}

// Recount is 'shoal billing recount', which compares the ledger with the page records.
type Recount struct {
	Connection
	JSON bool `help:"Print every run's two sums as JSON."`
}

// Help returns the command's help text.
func (*Recount) Help() string {
	return `It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY. The exit code is 0 if every run's ledger entry equals the sum of its page records, and 1 otherwise. A run whose
page records cannot be read is named and counts as unequal. The other runs are still compared.`
}

// Run recounts and compares.
func (c *Recount) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	recounted, err := client.Recount(ctx)
	if err != nil {
		return err
	}
	runs := recounted.Value
	var total, undone int64
	var differ, unread []string
	rows := make([][]string, len(runs))
	for i, run := range runs {
		if run.Unreadable {
			unread = append(unread, run.JobID)
			rows[i] = []string{run.JobID, terminal.Euros(run.LedgerMicros), "unknown", "UNREADABLE"}
			continue
		}
		if run.Undone {
			undone++
			rows[i] = []string{run.JobID, "none",
				terminal.Plural(int64(run.RecountItems), "row") + " stored", "undone by a restore"}
			continue
		}
		total += run.LedgerMicros
		equal := "equal"
		if !run.Equal {
			equal = "DIFFERENT"
			differ = append(differ, run.JobID)
		}
		rows[i] = []string{run.JobID, terminal.Euros(run.LedgerMicros),
			terminal.Euros(run.RecountMicros), equal}
	}
	if c.JSON {
		err = terminal.PrintJSON(t.Out, recounted)
	} else {
		err = terminal.PrintTable(t.Out, []string{"RUN", "LEDGER", "RECOUNT", ""}, rows)
	}
	if err != nil {
		return err
	}
	if text := c.failure(len(runs), differ, unread); text != "" {
		return &terminal.ExitError{Code: terminal.ExitFailed, Text: text}
	}
	t.Notef("%s, %s: the ledger equals the page records",
		terminal.Plural(int64(len(runs))-undone, "run"), terminal.Euros(total))
	if undone > 0 {
		t.Notef("%s: undone by a restore; nobody reads what is stored, and it goes when the "+
			"restore's grace is over", terminal.Plural(undone, "run"))
	}
	return nil
}

// failure names the faulty runs among the given number of runs; "": there are none.
func (*Recount) failure(of int, differ, unread []string) string {
	var said []string
	name := func(runs []string, what string) {
		if len(runs) > 0 {
			said = append(said, fmt.Sprintf("%s of %d: %s: %s",
				terminal.Plural(int64(len(runs)), "run"), of, what, strings.Join(runs, ", ")))
		}
	}
	name(differ, "ledger and page records differ")
	name(unread, "the page records cannot be read (the server's log says why)")
	return strings.Join(said, "; ")
}

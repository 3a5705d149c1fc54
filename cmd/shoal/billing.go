package main

import (
	"context"
	"fmt"
	"strings"
)

type billingCommand struct {
	Recount recountCommand `cmd:"" help:"Compute every run's charge again from its page records and compare it with the ledger."`
}

type recountCommand struct {
	connectFlags
	JSON bool `help:"Print every run's two sums as JSON."`
}

// Help teaches the command.
func (*recountCommand) Help() string {
	return `It asks as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY. The exit code is 0 when every run's ledger entry equals what its page records add up to, and 1 when one does not.`
}

// Run recounts and compares.
func (c *recountCommand) Run(ctx context.Context, t *terminal) error {
	client, err := c.adminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	runs, err := client.Recount(ctx)
	if err != nil {
		return err
	}
	var total, undone int64
	var differ []string
	rows := make([][]string, len(runs))
	for i, run := range runs {
		if run.Undone {
			undone++
			rows[i] = []string{run.JobID, "none", plural(int64(run.RecountItems), "row") + " stored", "undone by a restore"}
			continue
		}
		total += run.LedgerMicros
		equal := "equal"
		if !run.Equal {
			equal = "DIFFERENT"
			differ = append(differ, run.JobID)
		}
		rows[i] = []string{run.JobID, euros(run.LedgerMicros), euros(run.RecountMicros), equal}
	}
	if c.JSON {
		err = printJSON(t.out, runs)
	} else {
		err = printTable(t.out, []string{"RUN", "LEDGER", "RECOUNT", ""}, rows)
	}
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return &exitError{code: exitFailed, text: fmt.Sprintf("%s of %d: ledger and page records differ: %s",
			plural(int64(len(differ)), "run"), len(runs), strings.Join(differ, ", "))}
	}
	t.notef("%s, %s: the ledger equals the page records", plural(int64(len(runs))-undone, "run"), euros(total))
	if undone > 0 {
		t.notef("%s: undone by a restore; nobody reads what is stored, and it goes when the restore's grace is over", plural(undone, "run"))
	}
	return nil
}

package commands

import (
	"context"
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Reconcile is 'shoal billing reconcile', which compares the ledger with other records.
type Reconcile struct {
	Connection
	Days      int  `help:"Number of past days to ask the payment provider about." default:"31" placeholder:"DAYS"`
	NoRecount bool `help:"Do not compare with the page records."`
	JSON      bool `help:"Print the result as JSON."`
}

// Help returns the command's help text.
func (*Reconcile) Help() string {
	return `It changes nothing. It compares payments, refunds and disputes with the provider's balance, the accounts with each other,
each ledger entry with the sum of those before it, and each run's entry with its page records. Movements of the last five
minutes are left out, since the provider may report them late.

The exit code is 0 if all agree, and 10 if something differs; each difference is named. With 1 or 5 the comparison could
not be made.`
}

// Run reconciles, and recounts.
func (c *Reconcile) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := client.Reconcile(ctx, c.Days)
	if err != nil {
		return err
	}
	recounted := api.Answer[[]api.Recount]{JSON: json.RawMessage("null")}
	if !c.NoRecount {
		if recounted, err = client.Recount(ctx); err != nil {
			return err
		}
	}
	rows := differences(found.Value.Differences, recounted.Value)
	if c.JSON {
		err = terminal.PrintJSON(t.Out, map[string]any{"reconciliation": found,
			"recount": recounted})
	} else if len(rows) > 0 {
		err = terminal.PrintTable(t.Out,
			[]string{"DIFFERENCE", "CUSTOMER", "OF", "HERE", "WANT"}, rows)
	}
	if err != nil {
		return err
	}
	if n := int64(len(rows)) + found.Value.MoreDifferences; n > 0 {
		return &terminal.ExitError{Code: terminal.ExitDiffers,
			Text: fmt.Sprintf("the ledger differs in %s", terminal.Plural(n, "place"))}
	}
	provider := "nobody takes payments"
	if found.Value.ProviderAsked {
		provider = fmt.Sprintf("%s and %s at the provider in %s",
			terminal.Plural(found.Value.Payments, "payment"),
			terminal.Plural(found.Value.Reversals, "reversal"),
			terminal.Plural(int64(found.Value.Days), "day"))
	}
	t.Notef("%s, %s, %s, %s: all agree", terminal.Plural(found.Value.Wallets, "wallet"),
		terminal.Plural(found.Value.Entries, "posting"), provider,
		terminal.Plural(int64(len(recounted.Value)), "run"))
	return nil
}

// differences makes a table of all differences.
func differences(ledger []api.LedgerDifference, runs []api.Recount) (rows [][]string) {
	for _, d := range ledger {
		here, want := terminal.Euros(d.HereMicros), terminal.Euros(d.WantMicros)
		if d.Kind == "FREE_BOOKS" {
			here, want = fmt.Sprint(d.HereMicros), fmt.Sprint(d.WantMicros)
		}
		rows = append(rows, []string{d.Kind, d.CustomerRef, d.Subject, here, want})
	}
	for _, run := range runs {
		switch {
		case run.Unreadable:
			rows = append(rows, []string{"RUN_UNREADABLE", "", run.JobID,
				terminal.Euros(run.LedgerMicros), "unknown"})
		case !run.Equal && !run.Undone:
			rows = append(rows, []string{"RUN", "", run.JobID, terminal.Euros(run.LedgerMicros),
				terminal.Euros(run.RecountMicros)})
		}
	}
	return rows
}

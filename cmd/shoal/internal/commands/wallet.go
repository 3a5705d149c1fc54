package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Wallet is 'shoal wallet', a customer's balance and ledger.
type Wallet struct {
	Show   WalletShow   `cmd:"" default:"withargs" help:"Show the balance and the last transactions."`
	Adjust WalletAdjust `cmd:"" help:"Change a customer's balance, as the operator."`
}

// Help returns the command's help text.
func (*Wallet) Help() string {
	return `'shoal wallet' alone shows the wallet.

Examples:

  shoal wallet
  shoal wallet show --limit 50
  shoal wallet adjust --micros 25000000 --note 'first credit'     # 25 EUR`
}

// WalletShow is 'shoal wallet show', the balance and the newest ledger entries.
type WalletShow struct {
	Connection
	Limit int  `default:"10" help:"Most transactions to list, up to 100."`
	JSON  bool `help:"Print the server's two answers, wallet and transactions, as JSON."`
}

// Run shows the wallet.
func (c *WalletShow) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > 100 {
		return terminal.Usagef("--limit: 1 to 100")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	wallet, err := client.Wallet(ctx)
	if err != nil {
		return err
	}
	newest, err := client.Transactions(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, map[string]any{"wallet": wallet, "transactions": newest})
	}
	if _, err := fmt.Fprintln(t.Out, Balance(wallet.Value)); err != nil {
		return err
	}
	entries := newest.Value.Content
	rows := make([][]string, len(entries))
	for i := range entries {
		rows[i] = entryRow(&entries[i])
	}
	return terminal.PrintTable(t.Out,
		[]string{"CREATED (UTC)", "TYPE", "STATUS", "AMOUNT", "BALANCE AFTER", "RUN", "LINES"},
		rows)
}

// Balance says in one line what a wallet holds and whether it runs low.
func Balance(wallet api.Wallet) string {
	text := "Balance " + terminal.Euros(wallet.BalanceMicros)
	if wallet.FreeRequestsRemaining > 0 {
		text += ", " + terminal.Plural(wallet.FreeRequestsRemaining, "free request")
	}
	if wallet.LowBalance {
		text += " (low)"
	}
	return text
}

func entryRow(entry *api.Transaction) []string {
	after := ""
	if entry.BalanceAfterMicros != nil {
		after = terminal.Euros(*entry.BalanceAfterMicros)
	}
	return []string{terminal.Moment(entry.CreatedAt), entry.Type, entry.Status,
		terminal.Euros(entry.AmountMicros), after, entry.JobID,
		Lines(entry)}
}

// Lines sums up the parts of a transaction: "1,940 × 0.00015 EUR Plain, 5 free".
func Lines(entry *api.Transaction) string {
	var parts []string
	for _, line := range entry.Lines {
		text := fmt.Sprintf("%s × %s %s", terminal.Count(line.Pages),
			terminal.Euros(line.UnitPriceMicros), line.Label)
		if line.FreePages > 0 {
			text += fmt.Sprintf(", %s free", terminal.Count(line.FreePages))
		}
		if line.UnbilledPages > 0 {
			text += fmt.Sprintf(", %s unbilled", terminal.Count(line.UnbilledPages))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// WalletAdjust is 'shoal wallet adjust', an operator's ledger entry in a customer's wallet.
type WalletAdjust struct {
	Connection
	Micros   int64  `required:"" help:"Amount in micros (millionths of a euro). A negative one is taken away." placeholder:"N"`
	Note     string `required:"" help:"Reason, for the ledger." placeholder:"TEXT"`
	Customer string `help:"Customer whose wallet changes; by default that of the data directory's API key." placeholder:"REF"`
	JSON     bool   `help:"Print the ledger entry as JSON."`
}

// Help returns the command's help text.
func (*WalletAdjust) Help() string {
	return `It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.

Example, 25 EUR:

  shoal wallet adjust --micros 25000000 --note 'first credit'`
}

// Run adjusts the wallet.
func (c *WalletAdjust) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Customer == "" {
		if _, err := os.Stat(filepath.Join(c.Data, datadir.KeyFile)); c.Key == "" &&
			errors.Is(err, fs.ErrNotExist) {
			return terminal.Usagef("--customer: whose wallet? %s has no API key that says so",
				c.Data)
		}
		customer, err := c.Self(ctx, t)
		if err != nil {
			return err
		}
		c.Customer = customer
	}
	answer, err := Adjust(ctx, t, &c.Connection, c.Customer, c.Micros, c.Note)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	entry := answer.Value
	text := fmt.Sprintf("%s adjusted by %s", c.Customer, terminal.Euros(entry.AmountMicros))
	if entry.BalanceAfterMicros != nil {
		text += ", balance " + terminal.Euros(*entry.BalanceAfterMicros)
	}
	_, err = fmt.Fprintln(t.Out, text)
	return err
}

// Self is the customer that the API key belongs to.
func (c *Connection) Self(ctx context.Context, t *terminal.Terminal) (string, error) {
	client, err := c.Client(t)
	if err != nil {
		return "", err
	}
	defer client.Close()
	identity, err := client.Whoami(ctx)
	return identity.CustomerRef, err
}

// Adjust posts micros, millionths of a euro, to a customer's wallet as an administrator. A negative
// amount takes away. Each call posts again.
func Adjust(ctx context.Context, t *terminal.Terminal, c *Connection, customer string, micros int64,
	note string) (
	api.Answer[api.Transaction], error) {
	admin, err := c.AdminClient(t)
	if err != nil {
		return api.Answer[api.Transaction]{}, err
	}
	defer admin.Close()
	return admin.AdjustWallet(ctx, customer, micros, note)
}

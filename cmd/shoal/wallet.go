package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
)

type walletCommand struct {
	Show   walletShowCommand   `cmd:"" default:"withargs" help:"Show the balance and the last transactions."`
	Adjust walletAdjustCommand `cmd:"" help:"Change a customer's balance, as the operator."`
}

// Help teaches the command.
func (*walletCommand) Help() string {
	return `'shoal wallet' alone shows the wallet.

Examples:

  shoal wallet
  shoal wallet show --limit 50
  shoal wallet adjust --micros 25000000 --note 'first credit'     # 25 EUR`
}

type walletShowCommand struct {
	connectFlags
	Limit int  `default:"10" help:"Most transactions to list, up to 100."`
	JSON  bool `help:"Print wallet and transactions as JSON."`
}

// Run shows the wallet.
func (c *walletShowCommand) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 || c.Limit > 100 {
		return usagef("--limit: 1 to 100")
	}
	client, err := c.client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	wallet, err := client.Wallet(ctx)
	if err != nil {
		return err
	}
	entries, err := client.Transactions(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, map[string]any{"wallet": wallet, "transactions": entries})
	}
	if _, err := fmt.Fprintln(t.out, balance(wallet)); err != nil {
		return err
	}
	rows := make([][]string, len(entries))
	for i := range entries {
		rows[i] = entryRow(&entries[i])
	}
	return printTable(t.out, []string{"CREATED (UTC)", "TYPE", "STATUS", "AMOUNT", "BALANCE AFTER", "RUN", "LINES"}, rows)
}

func balance(wallet api.Wallet) string {
	text := "Balance " + euros(wallet.BalanceMicros)
	if wallet.FreeRequestsRemaining > 0 {
		text += ", " + plural(wallet.FreeRequestsRemaining, "free request")
	}
	if wallet.LowBalance {
		text += " (low)"
	}
	return text
}

func entryRow(entry *api.Transaction) []string {
	after := ""
	if entry.BalanceAfterMicros != nil {
		after = euros(*entry.BalanceAfterMicros)
	}
	return []string{moment(entry.CreatedAt), entry.Type, entry.Status, euros(entry.AmountMicros), after, entry.JobID,
		lines(entry)}
}

// lines says what a transaction is made of: "1,940 × 0.00015 EUR Plain, 5 free".
func lines(entry *api.Transaction) string {
	var parts []string
	for _, line := range entry.Lines {
		text := fmt.Sprintf("%s × %s %s", count(line.Pages), euros(line.UnitPriceMicros), line.Label)
		if line.FreePages > 0 {
			text += fmt.Sprintf(", %s free", count(line.FreePages))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

type walletAdjustCommand struct {
	connectFlags
	Micros   int64  `required:"" help:"Amount in micros, millionths of a euro; negative takes away." placeholder:"N"`
	Note     string `required:"" help:"Why, for the ledger." placeholder:"TEXT"`
	Customer string `help:"Whose wallet; by default that of the data directory's API key." placeholder:"REF"`
	JSON     bool   `help:"Print the ledger entry as JSON."`
}

// Help teaches the command.
func (*walletAdjustCommand) Help() string {
	return `It acts as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.

Example, 25 EUR:

  shoal wallet adjust --micros 25000000 --note 'first credit'`
}

// Run adjusts the wallet.
func (c *walletAdjustCommand) Run(ctx context.Context, t *terminal) error {
	if c.Customer == "" {
		if _, err := os.Stat(filepath.Join(c.Data, keyFile)); c.Key == "" && errors.Is(err, fs.ErrNotExist) {
			return usagef("--customer: whose wallet? %s has no API key that says so", c.Data)
		}
		customer, err := c.self(ctx, t)
		if err != nil {
			return err
		}
		c.Customer = customer
	}
	entry, err := adjust(ctx, t, &c.connectFlags, c.Customer, c.Micros, c.Note)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, entry)
	}
	text := fmt.Sprintf("%s adjusted by %s", c.Customer, euros(entry.AmountMicros))
	if entry.BalanceAfterMicros != nil {
		text += ", balance " + euros(*entry.BalanceAfterMicros)
	}
	_, err = fmt.Fprintln(t.out, text)
	return err
}

// self is the customer that the API key belongs to.
func (c *connectFlags) self(ctx context.Context, t *terminal) (string, error) {
	client, err := c.client(t)
	if err != nil {
		return "", err
	}
	defer client.Close()
	identity, err := client.Whoami(ctx)
	return identity.CustomerRef, err
}

func adjust(ctx context.Context, t *terminal, c *connectFlags, customer string, micros int64, note string) (
	api.Transaction, error) {
	admin, err := c.adminClient(t)
	if err != nil {
		return api.Transaction{}, err
	}
	defer admin.Close()
	return admin.AdjustWallet(ctx, customer, micros, note)
}

package billing

import (
	"context"
	"fmt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
)

// Bounds of a check's walk over the wallets. It pauses as the count of runs does. It reads up to
// walkedEntries per check, and then the rest of that wallet. A wallet counts as at least
// walletEntries.
const (
	walkedEntries = 5_000_000
	walletEntries = 250
	batchWallets  = 256 // per step
)

// walk is how far wallets are held against their entries. They are walked by customer, in rounds,
// each of which may take several checks.
type walk struct {
	Behind  string // customer of the newest wallet of this round
	Left    uint64 // entries still to read in this check
	Unequal int    // wallets of this round
	Before  int    // unequal wallets of the round before
}

// unequal returns how many wallets were unequal when they were last walked, or a few more.
func (w walk) unequal() int { return max(w.Unequal, w.Before) }

// walk holds some more wallets against their entries, and ends the check when none is left. If it
// fails, it records none of them.
func (d *Daily) walk(ctx context.Context, noted *check) error {
	c := *noted
	for range batchWallets {
		view := d.config.Control.View()
		wallet := view.WalletAfter(c.Wallets.Behind)
		if wallet == nil {
			c.Wallets = walk{Before: c.Wallets.Unequal}
		}
		if wallet == nil || c.Wallets.Left == 0 {
			d.end(&c, view)
			break
		}
		began := d.config.Clock.Now()
		if err := d.checkWallet(ctx, &c.Wallets, view, wallet); err != nil {
			return fmt.Errorf("billing: wallet of %s: %w", wallet.Customer, err)
		}
		if !clock.Pause(ctx, d.config.Clock, max(d.config.Clock.Now().Sub(began), leastPause)) {
			return ctx.Err()
		}
	}
	if ctx.Err() == nil {
		*noted = c
	}
	return ctx.Err()
}

// checkWallet holds a wallet against its entries. A wallet whose entries cannot be read while the
// row store answers counts as unequal, and does not hold up the others.
func (d *Daily) checkWallet(ctx context.Context, w *walk, view *client.View,
	wallet *client.Wallet) error {
	read, found, unread := d.config.History.CheckWallet(ctx, view, wallet)
	if unread != nil && isAway(ctx, d.config.Store) {
		return unread
	}
	w.Behind = wallet.Customer
	w.Left -= min(w.Left, max(read, walletEntries))
	if unread == nil && len(found) == 0 {
		return nil
	}
	if w.Unequal++; w.Unequal > maxUnequal {
		return nil
	}
	if unread != nil {
		d.config.Logger.Error("billing: a wallet cannot be checked", "customer", wallet.Customer,
			"error", unread)
	}
	d.tell(found)
	return nil
}

// end ends a check with the accounts as a whole, for which the state alone is needed.
func (d *Daily) end(c *check, view *client.View) {
	found := client.CheckBooks(view)
	d.tell(found)
	now := d.config.Clock.Now().UnixMilli()
	c.Running = false
	if c.Round {
		c.RoundEnded = now
	}
	c.Last = finished{Ended: now, Took: now - c.Began, Unequal: c.Unequal, Found: c.Found,
		Books: len(found)}
	d.config.Logger.Info("billing: the ledger has been held against the page records and itself",
		"unequal", c.Unequal, "unequalWallets", c.Wallets.unequal(), "books", len(found))
}

// tell logs what differs within the ledger.
func (d *Daily) tell(found []client.Difference) {
	for _, f := range found {
		d.config.Logger.Error("billing: the ledger is not the sum of its entries", "kind", f.Kind,
			"customer", f.Customer, "entry", f.Subject, "here", f.Here, "want", f.Want)
	}
}

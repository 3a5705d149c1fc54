package billing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

const unequalAccounts = "shoal_billing_books_unequal_accounts"

// open opens wallets of some entries.
func (c *checked) open(customers ...string) {
	c.t.Helper()
	for _, customer := range customers {
		c.control.Must(c.t, client.OpenCustomer{Customer: customer, Entry: c.ids.New()})
		for range 2 {
			c.control.Must(c.t, client.AdjustWallet{Customer: customer, Entry: c.ids.New(),
				Amount: 5})
		}
	}
}

// spoil adds to the balance after a customer's second entry, as a defect would.
func (c *checked) spoil(customer string, by int64) {
	c.t.Helper()
	var entries []client.Entry
	c.control.View().Entries(customer, func(e *client.Entry) bool {
		entries = append(entries, *e)
		return true
	})
	c.control.Spoil(c.t, func(tx *clienttest.Tx) {
		entries[1].BalanceAfter += by
		tx.PutEntry(&entries[1])
	})
}

// TestDailyWalksTheWallets: a wallet that is not the sum of its entries is told, each day until it
// is, and none of the others.
func TestDailyWalksTheWallets(t *testing.T) {
	c := newChecked(t)
	c.open("bob", "carol")
	d, log, metric := c.daily()
	c.look(d)
	if metric(unequalAccounts) != 0 || strings.Contains(log.String(), "level=ERROR") {
		t.Fatalf("all is equal, and the log says %s", log)
	}
	c.spoil("bob", 7)
	for day := range 2 {
		log.Reset()
		c.newDay()
		c.look(d)
		if unequal, text := metric(unequalAccounts), log.String(); unequal != 1 ||
			strings.Count(text, "level=ERROR") != 1 ||
			!strings.Contains(text, "kind=PREFIX_SUM customer=bob") {
			t.Errorf("day %d: %v accounts are unequal, and the log says %s", day, unequal, text)
		}
	}
	c.spoil("bob", -7)
	c.newDay()
	c.look(d)
	if unequal := metric(unequalAccounts); unequal != 0 {
		t.Errorf("%v accounts are unequal after the mend", unequal)
	}
}

// TestDailySumsUpTheBooks: postings that do not sum up to zero are told until they do.
func TestDailySumsUpTheBooks(t *testing.T) {
	c := newChecked(t)
	d, log, metric := c.daily()
	for _, by := range []int64{1, -1} {
		c.control.Spoil(t, func(tx *clienttest.Tx) {
			books := *tx.Books()
			books.Revenue += by
			books.FreeUsed += by
			tx.PutBooks(&books)
		})
		log.Reset()
		c.newDay()
		c.look(d)
		want := max(0, 2*by) // of money, and of free requests
		if unequal, text := metric(unequalAccounts), log.String(); unequal != float64(want) ||
			strings.Contains(text, "kind=BOOKS") != (want > 0) ||
			strings.Contains(text, "kind=FREE_BOOKS") != (want > 0) {
			t.Errorf("by %d: %v accounts are unequal, and the log says %s", by, unequal, text)
		}
	}
}

// TestWalkIsBounded: a check walks some wallets, and the next one continues behind them. What a
// round has found is told until the next round ends.
func TestWalkIsBounded(t *testing.T) {
	c := newChecked(t)
	c.open("bob", "carol")
	c.spoil("carol", 7)
	d, _, metric := c.daily()
	d.walkedEntries = walletEntries + 1
	for day, want := range []struct {
		behind  string
		unequal float64
	}{{"bob", 0}, {"", 1}, {"bob", 1}, {"", 0}} {
		c.newDay()
		c.look(d)
		if behind := c.check.Wallets.Behind; behind != want.behind ||
			metric(unequalAccounts) != want.unequal {
			t.Errorf("day %d: behind %q, %v accounts are unequal", day, behind,
				metric(unequalAccounts))
		}
		if day == 2 {
			c.spoil("carol", -7)
		}
	}
}

// torn is an archive in which one customer's entries cannot be read.
type torn struct{ *rowstoretest.Archive }

var errTorn = errors.New("an entry cannot be read")

func (a torn) PastEntries(ctx context.Context, q rowstore.PastEntriesQuery) ([]rowstore.PastEntry,
	error) {
	if slices.Contains(q.Customers, "bob") {
		return nil, errTorn
	}
	return a.Archive.PastEntries(ctx, q)
}

// TestDailyWalksBesideATornWallet: a wallet whose entries cannot be read counts as unequal, and
// does not hold up the others. While the row store is away, the check waits.
func TestDailyWalksBesideATornWallet(t *testing.T) {
	c := newChecked(t)
	c.open("bob", "carol")
	c.spoil("carol", 7)
	c.control.Archive(t, &c.archive, 0)
	d, log, metric := c.daily()
	d.config.History = client.NewHistory(torn{&c.archive})
	c.store.fail = errors.New("down")
	if err := c.advance(t.Context(), d); !errors.Is(err, errTorn) || log.Len() > 0 {
		t.Fatalf("answers %v, and the log says %s", err, log)
	}
	c.store.fail = nil
	c.look(d)
	if unequal, text := metric(unequalAccounts), log.String(); unequal != 2 ||
		!strings.Contains(text, "customer=bob") || !strings.Contains(text, "customer=carol") {
		t.Errorf("%v accounts are unequal, and the log says %s", unequal, text)
	}
}

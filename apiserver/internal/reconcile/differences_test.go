package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver/internal/reconcile"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/fault"
)

// moveBooks moves a micro from adjustments to another account, so the sum stays zero.
func moveBooks(m *months, to func(*clienttest.Books) *int64) {
	m.fake.Spoil(m, func(tx *clienttest.Tx) {
		books := *tx.Books()
		books.Adjustments--
		*to(&books)++
		tx.PutBooks(&books)
	})
}

// spoilWallet changes ann's wallet, and keeps the sum of all accounts.
func spoilWallet(m *months, change func(*client.Wallet)) {
	m.fake.Spoil(m, func(tx *clienttest.Tx) {
		wallet, books := *tx.Wallet("ann"), *tx.Books()
		before := wallet.Balance()
		change(&wallet)
		books.Adjustments -= wallet.Balance() - before
		tx.PutWallet(&wallet)
		tx.PutBooks(&books)
	})
}

// entry is ann's newest sealed entry, after skipping but of them.
func (m *months) entry(but int) client.Entry {
	all, err := client.NewHistory(m.store).EntriesBefore(m.Context(), m.fake.View(), "ann", nil,
		but+1)
	if err != nil || len(all) <= but {
		m.Fatal(len(all), err)
	}
	return *all[but]
}

// Each kind of difference within the ledger is reported, whatever else is right.
func TestDifferencesOfTheBooksAreNamed(t *testing.T) {
	for want, change := range map[client.DifferenceKind]func(m *months){
		client.ClearingDiffers: func(m *months) {
			moveBooks(m, func(b *clienttest.Books) *int64 { return &b.Clearing })
		},
		client.UnmatchedDiffers: func(m *months) {
			moveBooks(m, func(b *clienttest.Books) *int64 { return &b.Unmatched })
		},
		client.BooksDiffer: func(m *months) {
			moveBooks(m, func(b *clienttest.Books) *int64 { return new(int64) })
		},
		client.FreeBooksDiffer: func(m *months) {
			moveBooks(m, func(b *clienttest.Books) *int64 { b.Adjustments++; return &b.FreeUsed })
		},
		client.BalanceDiffers: func(m *months) {
			spoilWallet(m, func(w *client.Wallet) { w.Available++ })
		},
		client.PrefixSumDiffers: func(m *months) {
			entry := m.entry(1)
			m.fake.Spoil(m, func(tx *clienttest.Tx) {
				entry.BalanceAfter++
				tx.PutEntry(&entry)
			})
		},
	} {
		m := newMonths(t, 3)
		for range 3 {
			m.fake.Must(t, client.AdjustWallet{Customer: "ann", Entry: m.ids.New(), Amount: 5})
		}
		if got := m.reconciled().Differences; len(got) > 0 {
			t.Fatalf("at first: %+v", got)
		}
		change(m)
		if got := m.reconciled().Differences; len(got) != 1 || got[0].Kind != want ||
			got[0].Here == got[0].Want || want == client.PrefixSumDiffers && got[0].Subject !=
			m.entry(1).ID.String() {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// A missing entry is found, and so are sums that do not begin at 0.
func TestGapsAreNamed(t *testing.T) {
	for name, change := range map[string]func(m *months){
		"an entry is missing": func(m *months) {
			entry := m.entry(1)
			m.fake.Spoil(m, func(tx *clienttest.Tx) { tx.RemoveEntry(&entry) })
		},
		"the newest is missing": func(m *months) {
			entry := m.entry(0)
			m.fake.Spoil(m, func(tx *clienttest.Tx) { tx.RemoveEntry(&entry) })
		},
		"another sum": func(m *months) {
			spoilWallet(m, func(w *client.Wallet) { w.Available++; w.Sealed++ })
		},
	} {
		m := newMonths(t, 3)
		for range 3 {
			m.fake.Must(t, client.AdjustWallet{Customer: "ann", Entry: m.ids.New(), Amount: 5})
		}
		change(m)
		got := m.reconciled().Differences
		if len(got) == 0 || slices.ContainsFunc(got, func(d client.Difference) bool {
			return d.Kind != client.PrefixSumDiffers || d.Customer != "ann" || d.Here == d.Want
		}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Exactly MaxMovements movements are accepted. One more is refused, with a hint.
func TestMovementsAreBounded(t *testing.T) {
	m := newMonths(t, 4)
	add := func(n int) {
		id := fmt.Sprint("pi_many_", n)
		m.bank.moved[id] = payment.Movement{Payment: id}
	}
	for n := range reconcile.MaxMovements {
		add(n)
	}
	if got := m.reconciled(); len(got.Differences) > 0 {
		t.Errorf("at the bound: %+v", got)
	}
	add(reconcile.MaxMovements)
	now := m.clock.Now()
	_, err := reconcile.Run(t.Context(), m.fake, client.NewHistory(m.store), &m.bank, now, now)
	if fault.CodeOf(err) != fault.LimitReached {
		t.Errorf("too much has moved: %v", err)
	}
}

// A thousand differences are listed; the rest are counted.
func TestDifferencesAreBounded(t *testing.T) {
	for _, beyond := range []int{0, 1, 7} {
		m := newMonths(t, 5)
		for range reconcile.MaxDifferences + beyond {
			m.pay()
		}
		got := m.reconciled()
		if len(got.Differences) != reconcile.MaxDifferences || got.More != beyond {
			t.Errorf("%d beyond: %d are listed, and %d more", beyond, len(got.Differences),
				got.More)
		}
	}
}

// A ledger longer than one read is walked completely, wherever its entries are.
func TestLongLedgersAreWalked(t *testing.T) {
	m := newMonths(t, 6)
	const entries = 1_001
	for n := range entries {
		m.fake.Must(t, client.AdjustWallet{Customer: "ann", Entry: m.ids.New(), Amount: int64(n)})
		if n == entries/2 {
			m.fake.Archive(t, m.store, 3)
		}
	}
	if got := m.reconciled(); len(got.Differences) > 0 || got.Entries != entries+2 {
		t.Errorf("%+v", got)
	}
}

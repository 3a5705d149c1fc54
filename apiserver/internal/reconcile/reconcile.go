// Package reconcile holds the ledger against the payment provider and against itself. It owns the
// comparison and changes nothing. That runs cost what their pages say is the recount's (billing).
package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// Kind is of what kind a difference is.
type Kind string

// The kinds. Here is the ledger, there the payment provider.
const (
	// PaymentMissing: the provider has a payment for a wallet of this cluster, and nobody told us.
	PaymentMissing Kind = "PAYMENT_MISSING"
	// PaymentUnknown: a top-up was credited, and the provider has no such payment.
	PaymentUnknown Kind = "PAYMENT_UNKNOWN"
	PaymentAmount  Kind = "PAYMENT_AMOUNT"
	// ReversalMissing and ReversalUnknown are the same of refunds and disputes.
	ReversalMissing Kind = "REVERSAL_MISSING"
	ReversalUnknown Kind = "REVERSAL_UNKNOWN"
	ReversalAmount  Kind = "REVERSAL_AMOUNT"
	// Clearing: what top-ups and reversals come to is not what the provider owes by the books.
	Clearing Kind = "CLEARING"
	// Unmatched is the same of payments that are nobody's.
	Unmatched Kind = "UNMATCHED"
	// Books: all postings of money together, or of free requests, are not 0.
	Books     Kind = "BOOKS"
	FreeBooks Kind = "FREE_BOOKS"
	// Balance: a wallet is not the sum of its entries. PrefixSum: an entry does not stand at the
	// sum of those before it.
	Balance   Kind = "BALANCE"
	PrefixSum Kind = "PREFIX_SUM"
)

// Difference is between what is here and what it is held against, in micros. Of FreeBooks it is of
// free requests.
type Difference struct {
	Kind       Kind
	Customer   string // "": nobody's
	Subject    string // the payment, the reversal, or the entry
	Here, Want int64
}

// Bounds of a reconciliation.
const (
	MaxMovements   = 100_000 // of the provider, held at a time
	MaxDifferences = 1_000   // that are listed; others are counted
)

// told is for how long the provider may tell late of what moved, so many days it tries.
const told = 5 * 24 * time.Hour

// Report is what came of a reconciliation.
type Report struct {
	Provider    bool // there is one, and it was asked
	Payments    int  // that it told of, of this cluster
	Reversals   int
	Wallets     int
	Entries     uint64
	Differences []Difference
	More        int // differences beyond those
}

func (r *Report) differ(d Difference) {
	if len(r.Differences) == MaxDifferences {
		r.More++
		return
	}
	r.Differences = append(r.Differences, d)
}

func (r *Report) compare(kind Kind, customer, subject string, here, want int64) {
	if here != want {
		r.differ(Difference{Kind: kind, Customer: customer, Subject: subject, Here: here,
			Want: want})
	}
}

// Run reconciles. The provider is asked for what has moved from a time on and before another one;
// nil: there is none. Faults: payment_provider_failed, unavailable, limit_reached where more than
// MaxMovements have moved.
func Run(ctx context.Context, reader client.Reader, history *client.History,
	accounts payment.Accounts, from, to time.Time) (Report, error) {
	var r Report
	var there *movements
	if accounts != nil {
		r.Provider = true
		var err error
		if there, err = gather(ctx, accounts, from.Add(-told), to); err != nil {
			return r, err
		}
	}
	view, err := reader.Fresh(ctx) // what the provider told meanwhile is among it
	if err != nil {
		return r, err
	}
	if there != nil {
		r.againstProvider(view, there, from.UnixMilli(), to.UnixMilli())
	}
	r.books(view)
	for _, wallet := range view.Wallets() {
		if err := r.wallet(ctx, view, history, wallet, maxWaiting); err != nil {
			return r, fmt.Errorf("ledger of %s: %w", wallet.Customer, err)
		}
	}
	return r, nil
}

// movements are what the provider has.
type movements struct{ payments, reversals map[string]payment.Movement }

func gather(ctx context.Context, accounts payment.Accounts, from, to time.Time) (*movements,
	error) {
	there := &movements{map[string]payment.Movement{}, map[string]payment.Movement{}}
	for moved, err := range accounts.Movements(ctx, from, to) {
		switch {
		case err != nil:
			return nil, err
		case moved.Reversal != "":
			there.reversals[moved.Reversal] = moved
		default:
			there.payments[moved.Payment] = moved
		}
		if len(there.payments)+len(there.reversals) > MaxMovements {
			return nil, fault.New(fault.LimitReached, "more than %d payments and reversals have "+
				"moved; look at fewer days", MaxMovements)
		}
	}
	return there, nil
}

// againstProvider holds top-ups and reversals against what the provider has.
func (r *Report) againstProvider(view *client.View, there *movements, from, to int64) {
	cluster := ""
	if known := view.Cluster(); known != nil {
		cluster = known.ID.String()
	}
	for _, id := range slices.Sorted(maps.Keys(there.payments)) {
		moved, known := there.payments[id], view.TopUpOf(id)
		switch {
		case known != nil:
			r.Payments++
			r.compare(PaymentAmount, known.Customer, id, known.Paid, moved.Micros)
		case moved.Cluster == cluster:
			r.Payments++
			r.differ(Difference{Kind: PaymentMissing, Customer: moved.Customer, Subject: id,
				Want: moved.Micros})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(there.reversals)) {
		moved := there.reversals[id]
		topUp := view.TopUpOf(moved.Payment)
		if topUp == nil || topUp.Paid == 0 {
			continue // of another shop, or told above
		}
		r.Reversals++
		if known := view.Reversal(id); known != nil {
			r.compare(ReversalAmount, topUp.Customer, id, known.Booked, moved.Micros)
		} else {
			r.differ(Difference{Kind: ReversalMissing, Customer: topUp.Customer, Subject: id,
				Want: moved.Micros})
		}
	}
	view.EachTopUp(func(u *client.TopUp) bool {
		if _, known := there.payments[u.Payment]; u.Paid > 0 && u.Payment != "" && !known &&
			from <= u.EndedAt && u.EndedAt < to {
			r.differ(Difference{Kind: PaymentUnknown, Customer: u.Customer, Subject: u.Payment,
				Here: u.Paid})
		}
		return true
	})
	view.EachReversal(func(known *client.Reversal) bool {
		if _, told := there.reversals[known.ID]; known.Booked != 0 && !told &&
			from <= known.ToldAt && known.ToldAt < to {
			r.differ(Difference{Kind: ReversalUnknown, Subject: known.ID, Here: known.Booked})
		}
		return true
	})
}

// books holds the accounts against what stands behind them, and all together against 0.
func (r *Report) books(view *client.View) {
	books := view.Books()
	owed, nobodys := int64(0), int64(0)
	count := func(status string, micros int64) {
		owed += micros
		if status == client.TopUpUnmatched {
			nobodys += micros
		}
	}
	view.EachTopUp(func(u *client.TopUp) bool { count(u.Status, u.Paid); return true })
	view.EachReversal(func(known *client.Reversal) bool {
		if u := view.TopUpOf(known.Payment); u != nil && u.Paid != 0 {
			count(u.Status, -known.Booked)
		}
		return true
	})
	r.compare(Clearing, "", "", -books.Clearing, owed)
	r.compare(Unmatched, "", "", books.Unmatched, nobodys)
	money := books.Revenue + books.Adjustments + books.Clearing + books.Unmatched
	free := books.FreeIssued + books.FreeUsed
	for _, w := range view.Wallets() {
		money += w.Balance()
		free += w.Free + w.FreeHeld
	}
	r.compare(Books, "", "", money, 0)
	r.compare(FreeBooks, "", "", free, 0)
}

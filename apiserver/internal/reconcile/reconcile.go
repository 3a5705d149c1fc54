// Package reconcile compares the ledger with the payment provider and checks that it is consistent.
// It changes nothing. The recount (billing) checks that runs cost what their pages say.
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

// Kind is the kind of a difference.
type Kind string

// The kinds of differences.
const (
	// PaymentMissing: the provider has a payment for this cluster that the ledger lacks.
	PaymentMissing Kind = "PAYMENT_MISSING"
	// PaymentUnknown: a top-up was credited, but the provider has no such payment.
	PaymentUnknown Kind = "PAYMENT_UNKNOWN"
	PaymentAmount  Kind = "PAYMENT_AMOUNT"
	// ReversalMissing and ReversalUnknown are the same for refunds and disputes.
	ReversalMissing Kind = "REVERSAL_MISSING"
	ReversalUnknown Kind = "REVERSAL_UNKNOWN"
	ReversalAmount  Kind = "REVERSAL_AMOUNT"
	// Clearing: top-ups and reversals do not sum up to what the provider owes by the books.
	Clearing Kind = "CLEARING"
	// Unmatched is the same for payments that belong to nobody.
	Unmatched Kind = "UNMATCHED"
	// Books: all postings of money, or of free requests, do not sum up to 0.
	Books     Kind = "BOOKS"
	FreeBooks Kind = "FREE_BOOKS"
	// Balance: a wallet is not the sum of its entries. PrefixSum: an entry's balance is not the sum
	// of the entries up to it.
	Balance   Kind = "BALANCE"
	PrefixSum Kind = "PREFIX_SUM"
)

// Difference is a difference between the ledger and what it is compared with, in micros. For
// FreeBooks it is in free requests.
type Difference struct {
	Kind       Kind
	Customer   string // "": nobody
	Subject    string // id of the payment, reversal or entry
	Here, Want int64
}

// Bounds of a reconciliation.
const (
	MaxMovements   = 100_000 // of the provider, in memory
	MaxDifferences = 1_000   // listed ones; the rest are only counted
)

// told is how late the provider may tell us of a movement: it tries for this many days.
const told = 5 * 24 * time.Hour

// Report is the result of a reconciliation.
type Report struct {
	Provider    bool // a provider exists and was asked
	Payments    int  // of this cluster, from the provider
	Reversals   int
	Wallets     int
	Entries     uint64
	Differences []Difference
	More        int // differences that are not listed
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

// Run reconciles. The provider, unless accounts is nil, is asked for movements in [from, to).
// Faults: payment_provider_failed, unavailable, and limit_reached if there are more than
// MaxMovements.
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
	view, err := reader.Fresh(ctx) // includes what the provider told us meanwhile
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

// movements are the movements at the provider.
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

// againstProvider compares top-ups and reversals with the provider's movements.
func (r *Report) againstProvider(view *client.View, there *movements, from, to int64) {
	for _, id := range slices.Sorted(maps.Keys(there.payments)) {
		moved, known := there.payments[id], view.TopUpOf(id)
		switch {
		case known != nil:
			r.Payments++
			r.compare(PaymentAmount, known.Customer, id, known.Paid, moved.Micros)
		case view.IsOurs(moved.Cluster):
			r.Payments++
			r.differ(Difference{Kind: PaymentMissing, Customer: moved.Customer, Subject: id,
				Want: moved.Micros})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(there.reversals)) {
		moved := there.reversals[id]
		topUp := view.TopUpOf(moved.Payment)
		if topUp == nil || topUp.Paid == 0 {
			continue // of another shop, or reported above
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

// books compares the accounts with what they stand for, and the sum of all with 0.
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

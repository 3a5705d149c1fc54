// Package reconcile compares the ledger with the payment provider, and with itself. It changes
// nothing. The recount (billing) checks that runs cost what their pages say.
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

// What differs between the ledger and the provider.
const (
	// PaymentMissing: the provider has a payment for this cluster that the ledger lacks.
	PaymentMissing client.DifferenceKind = "PAYMENT_MISSING"
	// PaymentUnknown: a top-up was credited, but the provider has no such payment.
	PaymentUnknown client.DifferenceKind = "PAYMENT_UNKNOWN"
	PaymentAmount  client.DifferenceKind = "PAYMENT_AMOUNT"
	// ReversalMissing and ReversalUnknown are the same for refunds and disputes.
	ReversalMissing client.DifferenceKind = "REVERSAL_MISSING"
	ReversalUnknown client.DifferenceKind = "REVERSAL_UNKNOWN"
	ReversalAmount  client.DifferenceKind = "REVERSAL_AMOUNT"
)

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
	Differences []client.Difference
	More        int // differences that are not listed
}

func (r *Report) differ(found ...client.Difference) {
	listed := min(len(found), MaxDifferences-len(r.Differences))
	r.Differences = append(r.Differences, found[:listed]...)
	r.More += len(found) - listed
}

func (r *Report) compare(kind client.DifferenceKind, customer, subject string, here, want int64) {
	if here != want {
		r.differ(client.Difference{Kind: kind, Customer: customer, Subject: subject, Here: here,
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
	r.differ(client.CheckBooks(view)...)
	for _, wallet := range view.Wallets() {
		entries, found, err := history.CheckWallet(ctx, view, wallet)
		if err != nil {
			return r, fmt.Errorf("ledger of %s: %w", wallet.Customer, err)
		}
		r.Wallets++
		r.Entries += entries
		r.differ(found...)
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
			r.differ(client.Difference{Kind: PaymentMissing, Customer: moved.Customer,
				Subject: id, Want: moved.Micros})
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
			r.differ(client.Difference{Kind: ReversalMissing, Customer: topUp.Customer,
				Subject: id, Want: moved.Micros})
		}
	}
	view.EachTopUp(func(u *client.TopUp) bool {
		if _, known := there.payments[u.Payment]; u.Paid > 0 && u.Payment != "" && !known &&
			from <= u.EndedAt && u.EndedAt < to {
			r.differ(client.Difference{Kind: PaymentUnknown, Customer: u.Customer,
				Subject: u.Payment, Here: u.Paid})
		}
		return true
	})
	view.EachReversal(func(known *client.Reversal) bool {
		if _, told := there.reversals[known.ID]; known.Booked != 0 && !told &&
			from <= known.ToldAt && known.ToldAt < to {
			r.differ(client.Difference{Kind: ReversalUnknown, Subject: known.ID,
				Here: known.Booked})
		}
		return true
	})
}

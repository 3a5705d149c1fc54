package client

import (
	"context"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// DifferenceKind says what differs.
type DifferenceKind string

// What can differ within the ledger.
const (
	// ClearingDiffers: top-ups and reversals do not sum up to what the provider owes by the books.
	ClearingDiffers DifferenceKind = "CLEARING"
	// UnmatchedDiffers is the same for payments that belong to nobody.
	UnmatchedDiffers DifferenceKind = "UNMATCHED"
	// BooksDiffer: all postings of money, or of free requests, do not sum up to 0.
	BooksDiffer     DifferenceKind = "BOOKS"
	FreeBooksDiffer DifferenceKind = "FREE_BOOKS"
	// BalanceDiffers: a wallet is not the sum of its entries. PrefixSumDiffers: an entry's balance
	// is not the sum of the entries up to it.
	BalanceDiffers   DifferenceKind = "BALANCE"
	PrefixSumDiffers DifferenceKind = "PREFIX_SUM"
)

// Difference is an amount of the ledger that differs from the expected one, in micros. For
// FreeBooksDiffer it is in free requests.
type Difference struct {
	Kind       DifferenceKind
	Customer   string // "": nobody
	Subject    string // id of the payment, reversal or entry
	Here, Want int64
}

// differences are those found so far.
type differences []Difference

func (d *differences) compare(kind DifferenceKind, customer, subject string, here, want int64) {
	if here != want {
		*d = append(*d, Difference{kind, customer, subject, here, want})
	}
}

// CheckBooks compares the accounts with what they stand for, and the sum of all with 0.
func CheckBooks(v *View) []Difference {
	books, found := v.Books(), differences{}
	owed, nobodys := int64(0), int64(0)
	count := func(status string, micros int64) {
		owed += micros
		if status == TopUpUnmatched {
			nobodys += micros
		}
	}
	v.EachTopUp(func(u *TopUp) bool { count(u.Status, u.Paid); return true })
	v.EachReversal(func(known *Reversal) bool {
		if u := v.TopUpOf(known.Payment); u != nil && u.Paid != 0 {
			count(u.Status, -known.Booked)
		}
		return true
	})
	found.compare(ClearingDiffers, "", "", -books.Clearing, owed)
	found.compare(UnmatchedDiffers, "", "", books.Unmatched, nobodys)
	money := books.Revenue + books.Adjustments + books.Clearing + books.Unmatched
	free := books.FreeIssued + books.FreeUsed
	for _, w := range v.Wallets() {
		money += w.Balance()
		free += w.Free + w.FreeHeld
	}
	found.compare(BooksDiffer, "", "", money, 0)
	found.compare(FreeBooksDiffer, "", "", free, 0)
	return found
}

const (
	entriesAtOnce = 500
	// maxWaiting bounds the entries that wait for an older entry that was sealed later. Entries
	// made while a run went on are such.
	maxWaiting = 1_000_000
)

// sealed is the part of a sealed entry that counts here.
type sealed struct {
	amount, after int64
	id            ids.ID
}

// CheckWallet compares a wallet with its entries, and each entry with the sum of those up to it. It
// also returns how many sealed entries it has read. Faults: limit_reached, if too many entries wait
// for one that was sealed later.
func (h *History) CheckWallet(ctx context.Context, v *View, w *Wallet) (read uint64,
	found []Difference, err error) {
	return h.checkWallet(ctx, v, w, maxWaiting)
}

// checkWallet walks a wallet's ledger back to its beginning, in the order of sealing. It reads
// entries in the order of creation. Entries that come too early wait, at most most of them.
func (h *History) checkWallet(ctx context.Context, v *View, w *Wallet, most int) (read uint64,
	found differences, err error) {
	waiting := map[uint64]sealed{}
	next, sum, open := w.Sequence, w.Sealed, int64(0)
	gap := false
	for before := (*rowstore.PastPlace)(nil); ; {
		part, err := h.EntriesBefore(ctx, v, w.Customer, before, entriesAtOnce)
		if err != nil {
			return read, nil, err
		}
		for _, e := range part {
			if before = PlaceOf(e); e.Sequence == 0 {
				open += e.Amount
				continue
			}
			read++
			waiting[e.Sequence] = sealed{e.Amount, e.BalanceAfter, e.ID}
		}
		for one, come := waiting[next]; come; one, come = waiting[next] {
			delete(waiting, next)
			if one.after != sum && !gap {
				gap = true
				found.compare(PrefixSumDiffers, w.Customer, one.id.String(), one.after, sum)
			}
			sum -= one.amount
			next--
		}
		if len(waiting) > most {
			return read, nil, fault.New(fault.LimitReached, "more than %d entries wait for one",
				most)
		}
		if len(part) < entriesAtOnce {
			break
		}
	}
	if next > 0 || len(waiting) > 0 {
		return read, append(found, Difference{Kind: PrefixSumDiffers, Customer: w.Customer,
			Here: int64(len(waiting)), Want: int64(next)}), nil
	}
	found.compare(PrefixSumDiffers, w.Customer, "", 0, sum)
	found.compare(BalanceDiffers, w.Customer, "", w.Balance(), w.Sealed+open)
	return read, found, nil
}

package reconcile

import (
	"context"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	entriesAtOnce = 500
	// maxWaiting bounds the entries that wait for an older entry that was sealed later. Entries
	// made while a run went on are such.
	maxWaiting = 1_000_000
)

// sealed is the part of an entry that counts here.
type sealed struct {
	amount, after int64
	id            string
}

// wallet walks a wallet's ledger back to its beginning, in the order of sealing. It reads entries
// in the order of creation. Entries that come too early wait, at most most of them.
func (r *Report) wallet(ctx context.Context, view *client.View, history *client.History,
	w *client.Wallet, most int) error {
	r.Wallets++
	waiting := map[uint64]sealed{}
	next, sum, open := w.Sequence, w.Sealed, int64(0)
	gap := ""
	for before := (*rowstore.PastPlace)(nil); ; {
		part, err := history.EntriesBefore(ctx, view, w.Customer, before, entriesAtOnce)
		if err != nil {
			return err
		}
		for _, e := range part {
			if before = client.PlaceOf(e); e.Sequence == 0 {
				open += e.Amount
				continue
			}
			r.Entries++
			waiting[e.Sequence] = sealed{e.Amount, e.BalanceAfter, e.ID.String()}
		}
		for one, come := waiting[next]; come; one, come = waiting[next] {
			delete(waiting, next)
			if one.after != sum && gap == "" {
				gap = one.id
				r.compare(PrefixSum, w.Customer, one.id, one.after, sum)
			}
			sum -= one.amount
			next--
		}
		if len(waiting) > most {
			return fault.New(fault.LimitReached, "more than %d entries wait for one", most)
		}
		if len(part) < entriesAtOnce {
			break
		}
	}
	if next > 0 || len(waiting) > 0 {
		r.differ(Difference{Kind: PrefixSum, Customer: w.Customer, Here: int64(len(waiting)),
			Want: int64(next)})
		return nil
	}
	r.compare(PrefixSum, w.Customer, "", 0, sum)
	r.compare(Balance, w.Customer, "", w.Balance(), w.Sealed+open)
	return nil
}

package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of background work. A customer has at most 100 items of 68 KiB of one kind.
const (
	maxWork          = 100     // items of one kind and customer
	maxWorkArgs      = 4 << 10 // bytes
	maxWorkKind      = 32      // bytes
	maxWorkHeld      = 1024    // items of one kind that one node holds
	maxWorkDue       = 1000    // items that come due in one command, of each kind
	maxWorkLease     = 5 * 60 * 1000
	failedWorkMillis = 30 * 24 * 60 * 60 * 1000 // how long failed items stay
)

func enqueueWork(tx *state.Tx, p command.EnqueueWorkPayload) (command.None, error) {
	if tx.WorkItem(p.ID) != nil {
		return command.None{}, nil
	}
	switch {
	case p.ID.IsZero() || p.Kind == "" || len(p.Kind) > maxWorkKind:
		return command.None{}, fault.Invalid(fault.InvalidRequest, "kind",
			"must have 1 to %d bytes, and the item an id", maxWorkKind)
	case len(p.Args) > maxWorkArgs:
		return command.None{}, fault.Invalid(fault.InvalidRequest, "args",
			"must have at most %d bytes", maxWorkArgs)
	case tx.Customer(p.Customer).Removed():
		return command.None{}, errRemoved()
	case p.Once && wakeWork(tx, p):
		return command.None{}, nil
	case len(tx.WorkOf(p.Kind, p.Customer)) >= maxWork:
		return command.None{}, fault.New(fault.LimitReached,
			"%d items of background work of the kind %s are open for customer %q", maxWork,
			p.Kind, p.Customer)
	}
	tx.PutWork(&state.Work{ID: p.ID, Kind: p.Kind, Customer: p.Customer, Args: p.Args,
		State: state.WorkReady, At: tx.Now, Created: tx.Now, Advanced: tx.Now})
	return command.None{}, nil
}

// wakeWork reports whether the customer has an item of the kind. It wakes the item if asked to.
func wakeWork(tx *state.Tx, p command.EnqueueWorkPayload) bool {
	for _, known := range tx.WorkOf(p.Kind, p.Customer) {
		if known.State == state.WorkFailed {
			continue
		}
		if p.Wake && known.State == state.WorkWaiting {
			awake := *known
			come(tx, &awake, min(awake.At, tx.Now))
		}
		return true
	}
	return false
}

// come makes a waiting item ready that is due. A pause that it asked for counts as progress; a
// pause after a failure does not.
func come(tx *state.Tx, w *state.Work, at int64) {
	if w.State, w.At = state.WorkReady, at; w.Failures == 0 {
		w.Advanced = at
	}
	tx.PutWork(w)
}

func exchangeWork(tx *state.Tx, p command.ExchangeWorkPayload) (command.None, error) {
	if node := tx.Node(p.Node); node == nil || node.Boot != p.Boot {
		return command.None{}, fault.New(fault.NotFound,
			"this start of node %q is not the registered one: it holds no work", p.Node)
	}
	for i := range p.Reports {
		report(tx, &p, &p.Reports[i])
	}
	endLeases(tx, p.Node)
	own := &state.Worker{Node: p.Node, Boot: p.Boot, Until: tx.Now + min(p.Lease, maxWorkLease)}
	if p.Leaving {
		endLease(tx, own)
		return command.None{}, nil
	}
	held := tx.WorkHeldBy(p.Node)
	holds := len(held) > 0
	for _, want := range p.Wants {
		room := min(int(want.Most), maxWorkHeld)
		for _, w := range held {
			if w.Kind == want.Kind {
				room--
			}
		}
		holds = claimWork(tx, own, want, room) || holds
	}
	switch known := tx.Worker(p.Node); {
	case holds:
		tx.PutWorker(own)
	case known != nil:
		tx.RemoveWorker(known)
	}
	return command.None{}, nil
}

// report applies a node's report on an item, if the node holds it.
func report(tx *state.Tx, p *command.ExchangeWorkPayload, r *command.WorkReport) {
	known := tx.WorkItem(r.ID)
	if known == nil || known.State != state.WorkHeld || known.Node != p.Node ||
		known.Boot != p.Boot || known.Epoch != r.Epoch {
		return
	}
	if r.Outcome == command.WorkEnded {
		tx.RemoveWork(known)
		return
	}
	w := *known
	if r.Advanced && len(r.Progress) <= state.MaxWorkProgress {
		w.Progress, w.Advanced, w.Failures, w.Error = r.Progress, tx.Now, 0, ""
	}
	switch r.Outcome {
	case command.WorkReleased:
		w.Release()
	case command.WorkPaused, command.WorkFailed:
		w.Release()
		w.State, w.At = state.WorkWaiting, tx.Now+max(r.After, 0)
	case command.WorkGivenUp:
		w.Release()
		w.State, w.At = state.WorkFailed, tx.Now
	}
	switch r.Outcome {
	case command.WorkPaused:
		w.Failures, w.Error = 0, ""
	case command.WorkFailed, command.WorkGivenUp:
		w.Failures++
		w.Error = strings.ToValidUTF8(r.Error[:min(len(r.Error), state.MaxWorkError)], "")
	}
	tx.PutWork(&w)
}

// endLeases ends the expired leases of other nodes.
func endLeases(tx *state.Tx, but string) {
	var over []*state.Worker
	tx.WorkersByLease(func(w *state.Worker) bool {
		if w.Until > tx.Now {
			return false
		}
		if w.Node != but {
			over = append(over, w)
		}
		return true
	})
	for _, w := range over {
		endLease(tx, w)
	}
}

// endLease frees everything that a node holds.
func endLease(tx *state.Tx, w *state.Worker) {
	for _, item := range tx.WorkHeldBy(w.Node) {
		free := *item
		free.Release()
		tx.PutWork(&free)
	}
	if known := tx.Worker(w.Node); known != nil {
		tx.RemoveWorker(known)
	}
}

// claimWork gives a node up to most items of a kind, within the customers' bounds. It reports
// whether it gave any. Customers take turns.
func claimWork(tx *state.Tx, own *state.Worker, want command.WorkWant, most int) bool {
	var due []*state.Work
	tx.WorkWaiting(want.Kind, func(w *state.Work) bool {
		if w.At > tx.Now || len(due) == maxWorkDue {
			return false
		}
		due = append(due, w)
		return true
	})
	for _, w := range due {
		awake := *w
		come(tx, &awake, awake.At)
	}
	var taken []*state.Work
	customer, room := "", 0
	tx.WorkReady(want.Kind, want.After, func(w *state.Work) (skip, more bool) {
		if len(taken) >= most {
			return false, false
		}
		if w.Customer != customer || len(taken) == 0 {
			customer = w.Customer
			room = int(want.PerCustomer) - tx.WorkHeldFor(want.Kind, customer)
		}
		if room > 0 {
			taken = append(taken, w)
		}
		room--
		return room <= 0, true
	})
	for _, w := range taken {
		held := *w
		held.State, held.Node, held.Boot = state.WorkHeld, own.Node, own.Boot
		held.Epoch++
		tx.PutWork(&held)
	}
	return len(taken) > 0
}

// expireWork removes items that failed long ago, a bounded number at a time.
func expireWork(tx *state.Tx) {
	var old []*state.Work
	tx.WorkFailed(func(w *state.Work) bool {
		if w.At > tx.Now-failedWorkMillis || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, w)
		return true
	})
	for _, w := range old {
		tx.RemoveWork(w)
	}
}

// freeWork ends a node's lease, unless the lease is of the start boot.
func freeWork(tx *state.Tx, node string, boot ids.ID) {
	if holder := tx.Worker(node); holder != nil && holder.Boot != boot {
		endLease(tx, holder)
	}
}

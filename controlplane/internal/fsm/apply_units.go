package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// pageBudget is how many pages of a chain one dispatch may fetch (architecture, step 3).
const pageBudget = 10

// ledgerOfRun collects a command's changes to one run, written once at its end.
type ledgerOfRun struct {
	job    state.Job
	run    *state.Run
	entry  state.Entry
	prices price.List
	dirty  bool
	// domains are the domain rows of prices, filled on first use.
	domains []price.Row
}

// chargeAt returns how pages are charged whose domain's price row has a place, 0: no row.
func (r *ledgerOfRun) chargeAt(place uint8) model.PageCharge {
	return r.job.Charge.At(r.domainAt(place))
}

// domainAt returns the key of the price row at a place, "" for none.
func (r *ledgerOfRun) domainAt(place uint8) string {
	if place > 0 && r.domains == nil {
		r.domains = r.prices.Domains()
	}
	return price.KeyAt(r.domains, place)
}

// batch is a command on the units of several runs.
type batch struct {
	tx    *state.Tx
	books *books
	daily *dailies
	runs  map[ids.ID]*ledgerOfRun
	order []ids.ID
	// unbilled: billing is off, so nothing is reserved or charged.
	unbilled bool
}

func openBatch(tx *state.Tx) *batch {
	return &batch{tx: tx, books: openBooks(tx), daily: openDailies(tx),
		runs: map[ids.ID]*ledgerOfRun{}, unbilled: tx.Settings().BillingOff}
}

// run returns the command's copy of a run's records with its sets; nil when the run is closed or
// unknown.
func (b *batch) run(id ids.ID) *ledgerOfRun {
	if r, ok := b.runs[id]; ok {
		return r
	}
	job, run := b.tx.Job(id), b.tx.Run(id)
	if job == nil || run == nil {
		return nil
	}
	r := &ledgerOfRun{job: *job, run: run, entry: *b.tx.Entry(job.Entry),
		prices: b.tx.Prices(job.Prices).Rows}
	r.entry.Lines = slices.Clone(r.entry.Lines)
	b.runs[id] = r
	b.order = append(b.order, id)
	return r
}

func (b *batch) save() {
	for _, id := range b.order {
		r := b.runs[id]
		if !r.dirty {
			continue
		}
		r.job.Index = b.tx.Index
		job, entry := r.job, r.entry
		b.tx.PutJob(&job)
		b.tx.PutEntry(&entry)
	}
	b.books.save()
	b.daily.save()
}

func extendWindow(tx *state.Tx, p command.ExtendWindowPayload) (command.Window, error) {
	b := openBatch(tx)
	var window command.Window
	for _, want := range p.Runs {
		r := b.run(want.Job)
		for i, seq := range want.Seqs {
			if r == nil || r.job.State.Final() || seq >= r.job.Links || r.run.Out[seq] != nil ||
				r.run.Closed.Contains(seq) {
				continue
			}
			domain, place := uint64(0), uint8(0)
			if i < len(want.Domains) {
				domain = want.Domains[i]
			}
			if i < len(want.Priced) && r.domainAt(want.Priced[i]) != "" {
				place = want.Priced[i]
			}
			grant, ok := b.send(r, seq, domain, place)
			if !ok {
				window.Refused = append(window.Refused, command.SeqRef{Job: want.Job, Seq: seq})
				continue
			}
			window.Grants = append(window.Grants, grant)
		}
	}
	b.save()
	return window, nil
}

// send dispatches a seq with the reservation that money covers. If money covers none, and nothing
// out could return some, the run stops. A seq beyond a daily limit needs no money. A seq that waits
// for reads that are out is refused.
func (b *batch) send(r *ledgerOfRun, seq uint32, domain uint64, place uint8) (command.Grant,
	bool) {
	wallet := b.books.wallet(r.job.Customer)
	out := &state.Out{Attempt: 1, Tiers: r.job.Tiers, Chain: state.Chain{Domain: place}}
	if begun := r.run.Begun[seq]; begun != nil {
		out.Chain = *begun
	}
	want := min(pageBudget, r.job.MaxPages-min(out.Start, r.job.MaxPages-1))
	switch b.admit(r, out, domain) {
	case readWaits:
		return command.Grant{}, false
	case readLimited:
		out.Limited, out.Tiers, out.Grant = true, r.job.Tiers, 1
	}
	if !out.Limited && !b.fund(r, wallet, out, want) {
		b.daily.takeBack(r.job.Customer, out.Read)
		r.dirty = true
		switch capped := b.capped(r, out.Domain); {
		case capped && len(r.run.Out) == 0:
			r.job.State, r.job.Reason = model.Stopped, model.MaxChargeReached
		case !capped && wallet.Out == 0:
			r.job.State, r.job.Reason = model.Stopped, model.InsufficientBalance
			NotifyRun(b.tx, &r.job) // nothing is out, so its counts are final
		}
		return command.Grant{}, false
	}
	out.Number = b.tx.NextDispatch()
	r.run.TakeUp(seq)
	r.run.Out[seq] = out
	r.run.Reserved += out.Money()
	b.books.reserve(wallet, out)
	if r.job.State == model.Pending {
		r.job.State, r.job.Started, r.dirty = model.Running, b.tx.Now, true
	}
	return grantOf(r, seq, out), true
}

// admit counts a seq towards its run's daily limits, if there are any.
func (b *batch) admit(r *ledgerOfRun, out *state.Out, domain uint64) (verdict verdict) {
	if r.job.Daily != (model.DailyLimits{}) && domain != 0 {
		verdict, out.Read = b.daily.countRead(r.job.Customer, r.job.Daily, domain)
	}
	return verdict
}

// fund decides what is held for a unit: free requests first, then the price of the dearest
// affordable tier. An endpoint's row may make plain dearer than another tier, so tiers are dropped
// by price. A domain's price applies to all tiers. While billing is off it holds and refuses
// nothing.
func (b *batch) fund(r *ledgerOfRun, wallet *state.Wallet, out *state.Out, want uint32) bool {
	if b.unbilled {
		out.Tiers, out.Grant, out.Unbilled = r.job.Tiers, want, true
		return true
	}
	free := uint32(0)
	if !r.job.Charge.PaidOnly {
		free = uint32(min(int64(want), max(wallet.Free, 0)))
	}
	charge := r.chargeAt(out.Domain)
	tiers := r.prices.CheapestFirst(r.job.Tiers, charge)
	for n := len(tiers); n > 0; n-- {
		allowed := model.TiersOf(tiers[:n]...)
		worst, _ := r.prices.Page(tiers[n-1], charge)
		paid := uint32(min(int64(want-free), b.affordable(r, wallet, worst)))
		if free+paid == 0 {
			continue
		}
		out.Tiers, out.Price, out.Free, out.Grant = allowed, worst, free, free+paid
		return true
	}
	return false
}

// affordable returns how many pages at a price both the wallet and the run's cap cover.
func (b *batch) affordable(r *ledgerOfRun, wallet *state.Wallet, price int64) int64 {
	if price == 0 {
		return pageBudget
	}
	pages := max(wallet.Available, 0) / price
	if r.job.MaxCharge != nil {
		pages = min(pages, max(*r.job.MaxCharge-r.job.Charged-r.run.Reserved, 0)/price)
	}
	return pages
}

// capped reports whether the run's cap refuses the cheapest page at a place of prices.
func (b *batch) capped(r *ledgerOfRun, place uint8) bool {
	cheapest, ok := r.prices.Cheapest(r.job.Tiers, r.chargeAt(place))
	return ok && r.job.MaxCharge != nil && *r.job.MaxCharge-r.job.Charged-r.run.Reserved < cheapest
}

func grantOf(r *ledgerOfRun, seq uint32, o *state.Out) command.Grant {
	return command.Grant{Attempt: o.Attempt, Tiers: o.Tiers, Budget: o.Grant, From: o.From,
		DispatchRef: command.DispatchRef{Job: r.job.ID, Seq: seq, Number: o.Number},
		Limited:     o.Limited, Domain: r.domainAt(o.Domain)}
}

func redispatch(tx *state.Tx, p command.RedispatchPayload) (command.Window, error) {
	b := openBatch(tx)
	var window command.Window
	for _, lost := range p.Lost {
		r := b.run(lost.Job)
		if r == nil || r.run.Out[lost.Seq] == nil || r.run.Out[lost.Seq].Number != lost.Number {
			continue
		}
		out := r.run.Out[lost.Seq]
		if r.job.State.Final() {
			b.comeBack(r, lost.Seq)
			window.Gone = append(window.Gone, command.SeqRef{Job: lost.Job, Seq: lost.Seq})
			continue
		}
		if lost.Number > p.Moved {
			out.Attempt++
		}
		out.Number = tx.NextDispatch()
		window.Grants = append(window.Grants, grantOf(r, lost.Seq, out))
	}
	b.save()
	return window, nil
}

// comeBack sets a dispatched seq aside again and returns what is held for it.
func (b *batch) comeBack(r *ledgerOfRun, seq uint32) {
	out := r.run.Out[seq]
	b.books.release(b.books.wallet(r.job.Customer), out)
	b.daily.takeBack(r.job.Customer, out.Read)
	r.run.Reserved -= out.Money()
	delete(r.run.Out, seq)
	if out.Start > 0 {
		r.run.SetAside(seq, out.Chain)
	}
}

func settleReceipts(tx *state.Tx, p command.SettlePayload) (command.Settled, error) {
	b := openBatch(tx)
	var settled command.Settled
	for i := range p.Receipts {
		receipt := &p.Receipts[i]
		r := b.run(receipt.Job)
		if r == nil {
			continue
		}
		seq := receipt.Unit.Seq
		out := r.run.Out[seq]
		if out == nil {
			continue
		}
		if receipt.Outcome == model.Cancelled {
			if r.job.State.Final() {
				b.comeBack(r, seq)
				settled.Gone = append(settled.Gone, command.SeqRef{Job: receipt.Job, Seq: seq})
			}
			continue
		}
		if receipt.Unit.Page != out.Start {
			continue // settled before, or a marker will find its missing predecessor
		}
		b.settleUnit(r, out, receipt)
		switch receipt.Outcome {
		case model.Delivered:
			settled.Delivered++
		case model.Errored:
			settled.Errored++
		default:
			settled.Other++
		}
		switch {
		case receipt.Last:
			b.closeSeq(r, seq, receipt.Outcome == model.Errored)
			settled.Gone = append(settled.Gone,
				command.SeqRef{Job: receipt.Job, Seq: seq, Closed: true})
		case out.Grant == 0:
			b.comeBack(r, seq)
			settled.Gone = append(settled.Gone, command.SeqRef{Job: receipt.Job, Seq: seq})
		}
	}
	b.save()
	return settled, nil
}

// settleUnit charges and counts one unit. It charges only if billing was on at dispatch and is on
// now.
func (b *batch) settleUnit(r *ledgerOfRun, out *state.Out, receipt *model.Receipt) {
	r.dirty = true
	before := out.Money()
	paid := receipt.Outcome == model.Delivered && receipt.Quantity > 0
	row, _ := r.prices.Row(receipt.PriceRow)
	unbilled := b.unbilled || out.Unbilled
	charged, byFree := b.books.spend(b.books.wallet(r.job.Customer), out, paid && !unbilled,
		row.Of(int64(receipt.Quantity)))
	b.daily.end(r.job.Customer, out.Read, paid)
	out.Read = nil
	r.run.Reserved += out.Money() - before
	switch receipt.Outcome {
	case model.Delivered:
		r.job.Delivered++
		r.job.Pages++
		r.job.Items += uint64(receipt.Items)
		r.job.Charged += charged
		switch {
		case paid && unbilled:
			lineOf(&r.entry, row).Unbilled += uint64(receipt.Quantity)
		case paid:
			book(&r.entry, row, receipt.Quantity, charged, byFree)
		}
	case model.Errored:
		r.job.Pages++
	}
	out.Start++
	out.From = receipt.Next
	out.Attempt = 1 // a chain that advances is not given up
}

// lineOf returns the entry's line of a price row, and adds it if missing.
func lineOf(e *state.Entry, row price.Row) *state.Line {
	at := slices.IndexFunc(e.Lines, func(l state.Line) bool { return l.RowKey == row.RowKey })
	if at < 0 {
		at = len(e.Lines)
		e.Lines = append(e.Lines,
			state.Line{RowKey: row.RowKey, Label: row.Label, UnitPrice: row.Micros})
	}
	return &e.Lines[at]
}

// book adds a delivered page to the entry's line of its price row.
func book(e *state.Entry, row price.Row, quantity uint32, charged int64, byFree bool) {
	line := lineOf(e, row)
	if byFree {
		line.FreePages++
		e.FreeDelta--
		return
	}
	line.Pages += uint64(quantity)
	line.Amount -= charged
	e.Amount -= charged
}

// closeSeq closes a seq whose chain is settled to its end; failed counts it as an error.
func (b *batch) closeSeq(r *ledgerOfRun, seq uint32, failed bool) {
	out := r.run.Out[seq]
	b.books.release(b.books.wallet(r.job.Customer), out)
	r.run.Reserved -= out.Money()
	r.run.Close(seq)
	if failed {
		r.job.Errors++
	} else {
		r.job.Success++
	}
}

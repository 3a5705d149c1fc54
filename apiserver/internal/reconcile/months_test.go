package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/reconcile"
	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
)

// beside is what months has besides the ledger: stored pages, what the bank has ever told, and a
// backup.
type beside struct {
	pages    map[ids.ID]map[uint32]model.Receipt // by run and seq
	told     []client.Payload
	invoices map[string]client.InvoiceStatus // as the bank has them
	subs     map[string][]client.Contract    // by customer
	saved    *saved
	restores int
}

// saved is a backup with the positions of runs.
type saved struct {
	state []byte
	pages map[ids.ID]map[uint32]model.Receipt
	runs  []crawl
}

func newBeside() beside {
	return beside{pages: map[ids.ID]map[uint32]model.Receipt{},
		invoices: map[string]client.InvoiceStatus{}, subs: map[string][]client.Contract{}}
}

// keep records a stored page.
func (b *beside) keep(page model.Receipt) {
	if b.pages[page.Job] == nil {
		b.pages[page.Job] = map[uint32]model.Receipt{}
	}
	b.pages[page.Job][page.Unit.Seq] = page
}

// Recount implements billing.Recounter.
func (b *beside) Recount(_ context.Context, job ids.ID) (rowstore.Recount, error) {
	counted := rowstore.Recount{Quantity: map[string]uint64{}}
	for _, page := range b.pages[job] {
		counted.Delivered++
		counted.Items += uint64(page.Items)
		counted.Quantity[page.PriceRow] += uint64(page.Quantity)
	}
	return counted, nil
}

func copied(pages map[ids.ID]map[uint32]model.Receipt) map[ids.ID]map[uint32]model.Receipt {
	copied := map[ids.ID]map[uint32]model.Receipt{}
	for job, seqs := range pages {
		copied[job] = maps.Clone(seqs)
	}
	return copied
}

// announce queues a notice that the bank will give.
func (m *months) announce(notice client.Payload) {
	m.bank.notices = append(m.bank.notices, notice)
	m.told = append(m.told, notice)
}

// restore takes a backup, or goes back to the last one. Later pages are dropped, runs resume at
// their earlier positions, and the bank repeats all it ever told.
func (m *months) restore() {
	if m.saved == nil || m.r.IntN(2) == 0 {
		m.saved = &saved{state: m.fake.Backup(m), pages: copied(m.pages)}
		for _, run := range m.runs {
			m.saved.runs = append(m.saved.runs, *run)
		}
		return
	}
	m.restores++
	m.fake.Restore(m, m.saved.state, m.ids.New())
	m.pages, m.runs = copied(m.saved.pages), nil
	for _, run := range m.saved.runs {
		m.runs = append(m.runs, &run)
	}
	m.bank.notices = append([]client.Payload{}, m.told...)
}

// lead changes the leader: the last proposal is repeated, and a node begins from its snapshot.
func (m *months) lead() {
	m.fake.Repeat()
	m.fake.Replace(m)
}

// subscribe moves a subscription, which must not touch a wallet.
func (m *months) subscribe() {
	ref := customers[m.r.IntN(2)]
	switch m.r.IntN(4) {
	case 0:
		move := m.ids.New()
		if _, err := m.fake.Propose(m.Context(), client.BeginMove{Customer: ref, Move: move},
			nil); err != nil {
			return // another one is in progress
		}
		if m.r.IntN(2) == 0 {
			m.fake.Must(m, client.OpenCheckout{Customer: ref, Move: move, Checkout: client.Checkout{
				Session: "cs_" + move.String(), URL: "u", Plan: "PRO",
				Expires: m.clock.Now().Add(24 * time.Hour).UnixMilli()}})
		}
	case 1:
		m.count++
		m.subs[ref] = append(m.subs[ref], client.Contract{ID: fmt.Sprint("sub_", ref, m.count),
			Plan: "PRO", Created: m.clock.Now().Unix(), Standing: client.ContractLive,
			PeriodEnd: m.clock.Now().Add(30 * 24 * time.Hour).UnixMilli()})
	case 2:
		m.fake.View().EndingSubscriptions("", func(s *client.Subscription) bool {
			for _, session := range s.Stale {
				m.fake.Must(m, client.EndCheckout{Customer: s.Customer, Session: session})
			}
			return true
		})
	default:
		m.tellContract(ref)
	}
}

// tellContract tells how a contract stands, or that it has changed.
func (m *months) tellContract(ref string) {
	if len(m.subs[ref]) == 0 {
		return
	}
	c := &m.subs[ref][m.r.IntN(len(m.subs[ref]))]
	switch m.r.IntN(4) {
	case 0:
		c.Plan, c.Revision = []string{"PRO", "BASIC"}[m.r.IntN(2)], c.Revision+1
	case 1:
		c.Cancel, c.Revision = !c.Cancel, c.Revision+1
	case 2:
		c.Standing = client.Standing(m.r.IntN(4))
	}
	c.ToldAt = m.clock.Now().Unix()
	m.fake.Must(m, client.TellContract{Customer: ref, Contract: *c})
}

// invoice makes an invoice at the bank, which tells of it three times, in any order.
func (m *months) invoice() {
	m.count++
	id, ref := fmt.Sprint("in_", m.count), customers[m.r.IntN(2)]
	end := []client.InvoiceStatus{client.InvoicePaid, client.InvoiceVoid,
		client.InvoiceUncollectible}[m.r.IntN(3)]
	m.invoices[id] = end
	for _, status := range []client.InvoiceStatus{client.InvoiceDraft, client.InvoiceOpen, end} {
		m.announce(client.PutInvoice{Invoice: client.Invoice{ID: id, Customer: ref, Cents: 7_900,
			Currency: "eur", Status: status, IssuedAt: m.clock.Now().UnixMilli(),
			ToldAt: m.clock.Now().Unix()}})
	}
}

// recounted compares the entry of each closed run and trial with its stored pages, as the recount
// does.
func (m *months) recounted() (runs int) {
	m.Helper()
	for run, err := range billing.Recount(m.Context(), m.fake.View(), client.NewHistory(m.store),
		&m.beside) {
		if err != nil {
			m.Fatal(err)
		}
		if run.Undone {
			continue
		}
		if runs++; !run.Equal() {
			m.Errorf("%+v", run)
		}
	}
	return runs
}

// TestMonths: whatever happens in months and in whatever order it is told, all agrees in the end:
// ledger, provider, prefix sums and stored pages. As long as something is untold, exactly that is
// reported. Runs and trials at prices of all kinds take part, and so do top-ups, disputes,
// subscription moves, leader changes, archive and restore.
func TestMonths(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	recounted, restores, rows := 0, 0, map[string]bool{}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := newMonths(t, seed)
			happens := []func(){m.pay, m.reverse, m.giveBack, func() { m.tell(3) }, m.adjust,
				m.switchBilling, m.wait, func() { m.fake.Archive(t, m.store, m.r.IntN(3)) },
				m.launch, m.reprice, m.subscribe, m.invoice, m.lead}
			for range 300 {
				switch n := m.r.IntN(20); {
				case n < len(happens):
					happens[n]()
				case n == len(happens) && m.r.IntN(4) == 0:
					m.restore()
				default:
					m.crawl()
				}
			}
			for _, d := range m.reconciled().Differences {
				switch d.Kind {
				case reconcile.PaymentMissing, reconcile.ReversalMissing,
					reconcile.ReversalAmount:
				default:
					t.Errorf("before all is told: %+v", d)
				}
			}
			for len(m.bank.notices) > 0 {
				m.tell(10)
			}
			report := m.reconciled()
			if len(report.Differences) > 0 {
				t.Errorf("all is told: %+v", report.Differences)
			}
			if report.Wallets != 2 || report.Payments+report.Reversals != len(m.bank.moved) {
				t.Errorf("looked at %+v of %d movements", report, len(m.bank.moved))
			}
			for id, status := range m.invoices {
				if known := m.fake.View().Invoice(id); known == nil || known.Status != status {
					t.Errorf("invoice %s: %+v, want the status %d", id, known, status)
				}
			}
			recounted += m.recounted()
			restores += m.restores
			for _, pages := range m.pages {
				for _, page := range pages {
					rows[page.PriceRow] = true
				}
			}
		})
	}
	if uint64(recounted) < 5*seeds || uint64(restores) < seeds {
		t.Errorf("%d runs and %d restores in %d months are too few", recounted, restores, seeds)
	}
	for _, row := range []string{model.Plain.PriceRow(), model.Render.PriceRow(),
		model.EndpointRow(model.ProductPageTag), model.EndpointRow(model.WebsiteContacts),
		price.DomainKey("shop.test")} {
		if !rows[row] {
			t.Errorf("no page was charged by %s", row)
		}
	}
}

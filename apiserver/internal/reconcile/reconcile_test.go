package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/reconcile"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
)

// bank is a payment provider: what has moved, and what it has yet to tell.
type bank struct {
	moved   map[string]payment.Movement // by payment or reversal
	notices []client.Payload
	fail    error
}

func (b *bank) Movements(context.Context, time.Time, time.Time) iter.Seq2[payment.Movement, error] {
	return func(yield func(payment.Movement, error) bool) {
		for _, m := range b.moved {
			if !yield(m, nil) {
				return
			}
		}
		if b.fail != nil {
			yield(payment.Movement{}, b.fail)
		}
	}
}

// months is a ledger in which random things happen for months.
type months struct {
	*testing.T
	r     *rand.Rand
	clock *clock.Manual
	fake  *clienttest.Client
	store rowstore.Store
	ids   ids.Source
	bank  bank
	count int
	// reversals not yet given back, with their payments and amounts
	away     map[string]client.ReverseTopUp
	left     map[string]int64 // of each payment, not yet reversed
	scrapers map[string]ids.ID
	runs     []*crawl
	beside   // besides the ledger
}

// crawl is an open run or trial.
type crawl struct {
	job    ids.ID
	links  uint32
	next   uint32
	charge model.Charge
}

var customers = []string{"ann", "bob"}

func newMonths(t *testing.T, seed uint64) *months {
	c := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := &months{T: t, r: rand.New(rand.NewPCG(seed, 17)), clock: c, fake: clienttest.New(t, c),
		store: apitest.NewStore(t), ids: ids.Random{Now: c.Now},
		bank: bank{moved: map[string]payment.Movement{}}, away: map[string]client.ReverseTopUp{},
		left: map[string]int64{}, scrapers: map[string]ids.ID{}, beside: newBeside()}
	for _, ref := range customers {
		m.fake.Must(t, client.OpenCustomer{Customer: ref, Entry: m.ids.New()})
		group := m.ids.New()
		m.fake.Must(t, client.PutGroup{Create: true, ID: group, Customer: ref, Name: "g",
			DataTable: "t", StartType: "MANUAL"})
		m.scrapers[ref] = m.ids.New()
		m.fake.Must(t, client.PutScraper{Create: true, ID: m.scrapers[ref], Customer: ref,
			Group: group, Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	}
	return m
}

func (m *months) one(names []string) string {
	slices.Sort(names)
	return names[m.r.IntN(len(names))]
}

// pay makes a payment at the bank, for a customer or for one that does not exist.
func (m *months) pay() {
	m.count++
	id, session := fmt.Sprint("pi_", m.count), fmt.Sprint("cs_", m.count)
	ref := append(customers, "nobody")[m.r.IntN(3)]
	micros := int64(1+m.r.IntN(100)) * 10_000
	m.bank.moved[id] = payment.Movement{Payment: id, Customer: ref, Micros: micros,
		Cluster: m.fake.View().Cluster().ID.String()}
	m.left[id] = micros
	m.announce(client.PayTopUp{Session: session, Payment: id, Customer: ref, Amount: micros})
}

// reverse takes back part of a payment: a refund or a dispute.
func (m *months) reverse() {
	if len(m.left) == 0 {
		return
	}
	of := m.one(slices.Collect(maps.Keys(m.left)))
	cents := m.left[of] / 10_000
	if cents == 0 {
		return
	}
	m.count++
	told := client.ReverseTopUp{ID: fmt.Sprint("re_", m.count), Payment: of,
		Amount: (1 + m.r.Int64N(cents)) * 10_000}
	m.left[of] -= told.Amount
	m.away[told.ID] = told
	m.tellReversal(told)
}

// giveBack returns part of a reversal.
func (m *months) giveBack() {
	if len(m.away) == 0 {
		return
	}
	told := m.away[m.one(slices.Collect(maps.Keys(m.away)))]
	told.Back += m.r.Int64N(told.Amount - told.Back + 1)
	m.away[told.ID] = told
	m.tellReversal(told)
}

func (m *months) tellReversal(told client.ReverseTopUp) {
	m.bank.moved[told.ID] = payment.Movement{Payment: told.Payment, Reversal: told.ID,
		Micros: told.Amount - told.Back}
	m.announce(told)
}

// tell gives some notices to the ledger, in any order, some of them twice. News of a payment
// repeats the reversals that waited for it.
func (m *months) tell(most int) {
	for ; most > 0 && len(m.bank.notices) > 0; most-- {
		at := m.r.IntN(len(m.bank.notices))
		notice := m.bank.notices[at]
		if m.r.IntN(4) > 0 {
			m.bank.notices = slices.Delete(m.bank.notices, at, at+1)
		}
		switch told := notice.(type) {
		case client.PayTopUp:
			told.Entry = m.ids.New()
			notice = told
		case client.ReverseTopUp:
			told.Entry = m.ids.New()
			notice = told
		}
		paid, is := m.fake.Must(m, notice).(client.PaidTopUp)
		if !is {
			continue
		}
		for _, w := range paid.Waiting {
			m.fake.Must(m, client.ReverseTopUp{ID: w.ID, Payment: w.Payment, Amount: w.Amount,
				Back: w.Back, Entry: m.ids.New()})
		}
	}
}

func (m *months) adjust() {
	m.fake.Must(m, client.AdjustWallet{Customer: customers[m.r.IntN(2)], Entry: m.ids.New(),
		Amount: int64(m.r.IntN(3_000)) - 1_000, Note: "n"})
}

func (m *months) switchBilling() {
	off := m.r.IntN(2) == 0
	m.fake.Must(m, client.PutSettings{BillingOff: &off})
}

// launch begins a run or a trial, unless money or another run prevents it.
func (m *months) launch() {
	ref := customers[m.r.IntN(2)]
	run := &crawl{job: m.ids.New(), links: 1 + uint32(m.r.IntN(8))}
	launch := client.LaunchRun{Job: run.job, Entry: m.ids.New(), Customer: ref,
		Scraper: m.scrapers[ref], List: m.ids.New(), Links: run.links, Tiers: model.AllTiers}
	if m.r.IntN(2) == 0 {
		tag := []string{"", model.ProductPageTag, model.WebsiteContacts}[m.r.IntN(3)]
		endpoint, _ := model.EndpointOf(tag)
		run.links, run.charge = 1, endpoint.Charge
		launch.Scraper, launch.Links, launch.Charge = ids.ID{}, 1, run.charge
		launch.Trial = &client.Trial{Source: model.SourcePreviewURL,
			Recipe: model.Recipe{Type: model.SingleProduct, Endpoint: tag}}
	}
	if _, err := m.fake.Propose(m.Context(), launch, nil); err == nil {
		m.runs = append(m.runs, run)
	}
}

// reprice sets the prices of later runs, and one of a domain.
func (m *months) reprice() {
	now := m.fake.View().CurrentPrices()
	rows := slices.Clone(now.Rows)
	if len(rows.Domains()) == 0 {
		rows = append(rows, price.Row{RowKey: price.DomainKey("shop.test"), Kind: price.Domain,
			Label: "shop"})
	}
	for i := range rows {
		rows[i].Micros = int64(m.r.IntN(1_000))
	}
	m.fake.Must(m, client.SetPrices{Version: now.Version, Rows: rows})
}

// crawl settles a page of a run, sometimes twice, or ends the run.
func (m *months) crawl() {
	if len(m.runs) == 0 {
		return
	}
	at := m.r.IntN(len(m.runs))
	run := m.runs[at]
	job := m.fake.View().Job(run.job)
	if run.next == run.links || job.State.Final() || m.r.IntN(10) == 0 {
		if run.next < run.links && !job.State.Final() {
			m.fake.Must(m, client.StopRun{Customer: job.Customer, Job: run.job})
		}
		m.fake.CloseRun(m, run.job)
		m.runs = slices.Delete(m.runs, at, at+1)
		return
	}
	receipt := model.Receipt{Job: run.job, Unit: model.Unit{Seq: run.next},
		Outcome: model.Errored, Last: true}
	granted, domain := m.fake.DispatchAt(m, run.job, run.next, byte(m.r.IntN(2)))
	if tiers := granted.Tiers(); len(tiers) > 0 && m.r.IntN(8) > 0 {
		receipt.Outcome, receipt.Items = model.Delivered, uint32(1+m.r.IntN(3))
		receipt.PriceRow, receipt.Quantity =
			run.charge.At(domain).Of(tiers[m.r.IntN(len(tiers))])
		m.keep(receipt)
	}
	for range 1 + m.r.IntN(2) {
		if err := m.fake.Settle(m.Context(), []model.Receipt{receipt}, nil); err != nil {
			m.Fatal(err)
		}
	}
	run.next++
}

func (m *months) wait() {
	m.clock.Advance(time.Duration(1+m.r.IntN(48)) * time.Hour)
	m.fake.Tick(m)
}

// reconciled is the result of a reconciliation.
func (m *months) reconciled() reconcile.Report {
	m.Helper()
	now := m.clock.Now()
	report, err := reconcile.Run(m.Context(), m.fake, client.NewHistory(m.store), &m.bank,
		now.Add(-399*24*time.Hour), now.Add(time.Hour))
	if err != nil {
		m.Fatal(err)
	}
	return report
}

// Each kind of difference with the provider is reported, with its customer and subject.
func TestDifferencesAreNamed(t *testing.T) {
	for want, change := range map[client.DifferenceKind]func(m *months){
		reconcile.PaymentMissing: func(m *months) { m.bank.notices = nil; m.pay() },
		reconcile.PaymentUnknown: func(m *months) { clear(m.bank.moved) },
		reconcile.PaymentAmount: func(m *months) {
			moved := m.bank.moved["pi_1"]
			moved.Micros++
			m.bank.moved["pi_1"] = moved
		},
		reconcile.ReversalMissing: func(m *months) { m.reverse() },
		reconcile.ReversalUnknown: func(m *months) {
			m.reverse()
			m.tell(10)
			delete(m.bank.moved, "re_2")
		},
		reconcile.ReversalAmount: func(m *months) {
			m.reverse()
			m.tell(10)
			moved := m.bank.moved["re_2"]
			moved.Micros--
			m.bank.moved["re_2"] = moved
		},
	} {
		m := newMonths(t, 3)
		m.pay()
		for len(m.bank.notices) > 0 {
			m.tell(1)
		}
		if got := m.reconciled().Differences; len(got) > 0 {
			t.Fatalf("at first: %+v", got)
		}
		change(m)
		if got := m.reconciled().Differences; len(got) != 1 || got[0].Kind != want ||
			got[0].Subject == "" || got[0].Here == got[0].Want {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// Payments of other shops are not differences, and neither are failures of the provider.
func TestOthersAndFailures(t *testing.T) {
	m := newMonths(t, 4)
	m.bank.moved["pi_x"] = payment.Movement{Payment: "pi_x", Cluster: "other", Micros: 7}
	m.bank.moved["pi_y"] = payment.Movement{Payment: "pi_y", Micros: 7}
	m.bank.moved["re_x"] = payment.Movement{Payment: "pi_x", Reversal: "re_x", Micros: 7}
	if r := m.reconciled(); len(r.Differences) > 0 || r.Payments+r.Reversals > 0 || !r.Provider {
		t.Errorf("of others: %+v", r)
	}
	m.fake.Spoil(t, func(tx *clienttest.Tx) {
		cluster := *tx.Cluster()
		cluster.Former = []ids.ID{{9}}
		tx.PutCluster(&cluster)
	})
	m.bank.moved["pi_z"] = payment.Movement{Payment: "pi_z", Cluster: ids.ID{9}.String(), Micros: 7}
	if r := m.reconciled(); len(r.Differences) != 1 || r.Differences[0].Subject != "pi_z" ||
		r.Differences[0].Kind != reconcile.PaymentMissing {
		t.Errorf("of a cluster whose backup lives on here: %+v", r)
	}
	delete(m.bank.moved, "pi_z")
	m.bank.fail = fault.New(fault.ProviderFailed, "away")
	_, err := reconcile.Run(t.Context(), m.fake, client.NewHistory(m.store), &m.bank,
		m.clock.Now(), m.clock.Now())
	if fault.CodeOf(err) != fault.ProviderFailed {
		t.Errorf("the provider fails: %v", err)
	}
	m.bank.fail = nil
	r, err := reconcile.Run(t.Context(), m.fake, client.NewHistory(m.store), nil, m.clock.Now(),
		m.clock.Now())
	if err != nil || r.Provider || len(r.Differences) > 0 || r.Wallets != 2 {
		t.Errorf("without a provider: %+v, %v", r, err)
	}
}

// Package historytest makes the data of years of use, for the bench. That is a state with customers
// and their scrapers, as a backup that can be restored, and an archive of ended runs. The archive's
// own writer writes the records, in the order in which the runs were sealed. The state keeps of
// them what DropArchived keeps, and the notices of the runs of the last 90 days, all unread. The
// package starts no process and measures nothing.
package historytest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/backup"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
)

// Config says how much data to make.
type Config struct {
	Customers int // each with a wallet and a group, 1 or more
	Scrapers  int // in total, spread evenly over all customers
	Recipes   int // number of different recipes, 1 or more
	// Active is how many customers have API keys and runs, about equally many: 2 to Customers. The
	// first one has a hundredth of all runs as well.
	Active int
	Runs   int // ended runs in the archive
	Keep   int // newest runs of a customer that also stay in the state, 0 or more
	// Address returns the URL of a scraper; Fields are the fields it extracts.
	Address func(scraper int) string
	Fields  []model.Field
	Shards  uint16
	Now     time.Time // the runs ended in the 390 days before
}

const (
	historySpan  = 390 * 24 * time.Hour
	cohort       = 100     // customers that run at the same time
	largestShare = 100     // the first customer has one run in this many
	firstIndex   = 1 << 20 // Raft index of the first run; the definitions lie before it
	money        = 1_000_000_000_000
	charge       = 150 // micros per run, by the standard prices
	batch        = rowstore.MaxPast
	atOnce       = 10_000 // records per update of the state
)

// History is a state under construction.
type History struct {
	config    Config
	store     *state.Store
	cluster   ids.ID
	customers []*customer // the active customers
	made      int         // ids made so far
}

// customer is an active customer.
type customer struct {
	ref      string
	group    ids.ID
	scrapers []ids.ID
	past     []*state.PastRuns // one for each scraper
	runs     int
	newest   []run // those that stay in the state, oldest first
}

type run struct {
	job   *state.Job
	entry *state.Entry
}

// New makes the customers and their scrapers.
func New(config Config) (*History, error) {
	h := &History{config: config, store: state.NewStore()}
	h.cluster = h.id(config.Now)
	err := h.store.Update(1, config.Now.Add(-historySpan).UnixMilli(), func(tx *state.Tx) error {
		tx.PutCluster(&state.Cluster{ID: h.cluster, Shards: config.Shards, CreatedAt: tx.Now,
			HashSecret: 1, Version: command.Newest})
		tx.PutPrices(&state.PriceTable{Version: 1, Rows: price.Standard()})
		tx.PutBooks(&state.Books{Adjustments: -money * int64(config.Customers),
			Revenue: charge * int64(config.Runs)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	each := max(config.Scrapers/config.Customers, 1)
	for from := 0; from < config.Customers; from += max(atOnce/each, 1) {
		err := h.store.Update(2, 0, func(tx *state.Tx) error {
			for n := from; n < min(from+max(atOnce/each, 1), config.Customers); n++ {
				h.define(tx, n, each)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Ref returns the name of a customer by number.
func Ref(customer int) string { return fmt.Sprintf("auth0|%024d", customer) }

// Key returns the API key of an active customer.
func Key(customer int) string { return fmt.Sprintf("svc_live_%07d.%026d", customer, customer) }

// Scraper returns the id of an active customer's scraper by number.
func (h *History) Scraper(customer, scraper int) ids.ID {
	return h.customers[customer].scrapers[scraper]
}

// define makes customer number n, with its wallet, group, key and scrapers.
func (h *History) define(tx *state.Tx, n, scrapers int) {
	at := h.config.Now.Add(-historySpan)
	c := &customer{ref: Ref(n), group: h.id(at), past: make([]*state.PastRuns, scrapers)}
	tx.PutCustomer(&state.Customer{Ref: c.ref, CreatedAt: tx.Now})
	tx.PutWallet(&state.Wallet{Customer: c.ref, Available: money, Sealed: money, ToppedUp: true})
	tx.PutGroup(&state.Group{ID: c.group, Customer: c.ref, Name: "Products",
		DataTable: "products", StartType: "MANUAL", CreatedAt: tx.Now, UpdatedAt: tx.Now,
		Scrapers: scrapers})
	for i := range scrapers {
		number := n*scrapers + i
		spec := h.spec(number)
		id := h.id(at)
		recipe, _ := tx.RecipeOf(c.ref, &spec, "")
		tx.PutRecipe(&state.Recipe{Scraper: id, Revision: 1, Recipe: recipe})
		tx.PutScraper(&state.Scraper{ID: id, Customer: c.ref, Group: c.group, Spec: spec,
			Revision: 1, CreatedAt: tx.Now + int64(number), UpdatedAt: tx.Now + int64(number)})
		c.scrapers = append(c.scrapers, id)
	}
	if n < h.config.Active {
		key := Key(n)
		tx.PutKey(&state.Key{ID: h.id(at), Customer: c.ref,
			Prefix: strings.TrimPrefix(key, "svc_live_")[:7], Hash: sha256.Sum256([]byte(key)),
			Name: "bench", Scope: model.ScopeUser, CreatedAt: tx.Now})
		h.customers = append(h.customers, c)
	}
}

// spec returns a scraper by number. Recipes differ in one field, which no page has.
func (h *History) spec(number int) model.Scraper {
	spec := model.Scraper{Name: fmt.Sprintf("Shop number %d", number), Type: model.SingleProduct,
		SourceConfig: model.SourceConfig{URL: h.config.Address(number)}}
	spec.ItemsConfig = append(spec.ItemsConfig, h.config.Fields...)
	if kind := number % h.config.Recipes; kind > 0 {
		spec.ItemsConfig = append(spec.ItemsConfig, model.Field{
			Name:     fmt.Sprintf("detail_%d", kind),
			Selector: fmt.Sprintf("main .product-%d > div.detail", kind), Kind: model.Text})
	}
	return spec
}

// id returns a new id: its seconds, then pseudo-random bits.
func (h *History) id(at time.Time) (id ids.ID) {
	h.made++
	x := uint64(h.made) * 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	binary.BigEndian.PutUint32(id[:], uint32(at.Unix()))
	binary.BigEndian.PutUint64(id[4:], x^x>>31)
	return id
}

// Fill writes all runs and entries to an archive, and reports the number of runs after each batch.
// It is called once.
func (h *History) Fill(ctx context.Context, to rowstore.Archive, said func(runs int)) error {
	runs, entries := make([]rowstore.PastRun, 0, batch), make([]rowstore.PastEntry, 0, batch)
	ended := make([]*state.Job, 0, batch)
	for n := range h.config.Runs {
		made := h.run(n)
		record, err := archive.EncodeRun(h.cluster, made.job)
		if err != nil {
			return err
		}
		entry, err := archive.EncodeEntry(h.cluster, made.job.Index, made.entry)
		if err != nil {
			return err
		}
		runs, entries = append(runs, record), append(entries, entry)
		ended = append(ended, made.job)
		if len(runs) == batch || n == h.config.Runs-1 {
			if err := to.PutPast(ctx, runs, entries); err != nil {
				return err
			}
			if err := h.notify(ended); err != nil {
				return err
			}
			runs, entries, ended = runs[:0], entries[:0], ended[:0]
			said(n + 1)
		}
	}
	return h.keep()
}

// notify makes the notices of ended runs, as the commands that ended them did.
func (h *History) notify(ended []*state.Job) error {
	last := ended[len(ended)-1]
	return h.store.Update(last.Index, last.Finished, func(tx *state.Tx) error {
		for _, job := range ended {
			if job.Finished > h.config.Now.UnixMilli()-state.NoticeKeptMillis {
				tx.Index, tx.Now = job.Index, job.Finished
				fsm.NotifyRun(tx, job)
			}
		}
		return nil
	})
}

// Notices returns the number of notices in the state, and how many bytes they take packed.
func (h *History) Notices() (count, size int) { return h.store.View().CountNotices() }

// of returns the customer of run n.
func (h *History) of(n int) *customer {
	if n%largestShare == 0 {
		return h.customers[0]
	}
	others := len(h.customers) - 1
	n -= n/largestShare + 1
	size := min(cohort, others)
	each := max((h.config.Runs-h.config.Runs/largestShare+others-1)/others, 1)
	return h.customers[1+(n/(size*each)*size+n%size)%others]
}

// run makes run n, which has one page.
func (h *History) run(n int) run {
	c := h.of(n)
	at := h.config.Now.Add(-historySpan + time.Duration(float64(historySpan)*float64(n)/
		float64(h.config.Runs)))
	scraper := c.runs % len(c.scrapers)
	c.runs++
	created, millis := uint64(firstIndex+2*n), at.UnixMilli()
	job := &state.Job{ID: h.id(at), Customer: c.ref, Group: c.group, Scraper: c.scrapers[scraper],
		Revision: 1, List: h.id(at), Links: 1, State: model.Completed, Queued: millis - 2_500,
		Started: millis - 2_400, Finished: millis, Closed: true, Success: 1, Items: 1, Pages: 1,
		Tiers: model.TiersOf(model.Plain), Prices: 1, Entry: h.id(at), Index: created + 1,
		Delivered: 1, Charged: charge, MaxPages: 1}
	entry := &state.Entry{ID: job.Entry, Customer: c.ref, Type: state.EntryCharge,
		Status: state.EntrySettled, Amount: -charge,
		BalanceAfter: money - charge*int64(c.runs), Source: model.SourceRun, Job: job.ID,
		Scraper: job.Scraper, Group: c.group, Lines: []state.Line{{RowKey: "tier:plain",
			Label: "Plain", Pages: 1, UnitPrice: charge, Amount: -charge}},
		CreatedAt: job.Queued, SettledAt: millis, Sequence: uint64(c.runs), Created: created}
	made := run{job, entry}
	c.newest = append(c.newest, made)
	if len(c.newest) > h.config.Keep {
		gone := c.newest[0].job
		known := &state.Scraper{Group: c.group}
		if len(c.scrapers) > h.config.Keep {
			known.LastJob = gone.ID // no newer run of this scraper is kept
		}
		c.past[c.number(gone.Scraper)] = c.past[c.number(gone.Scraper)].Add(gone, known, false)
		c.newest = append(c.newest[:0:0], c.newest[1:]...)
	}
	return made
}

func (c *customer) number(scraper ids.ID) int {
	for i, id := range c.scrapers {
		if id == scraper {
			return i
		}
	}
	panic("historytest: a scraper of nobody")
}

// keep puts the runs that stay into the state.
func (h *History) keep() error {
	index := uint64(firstIndex + 2*h.config.Runs)
	for from := 0; from < len(h.customers); from += 1_000 {
		err := h.store.Update(index, h.config.Now.UnixMilli(), func(tx *state.Tx) error {
			for _, c := range h.customers[from:min(from+1_000, len(h.customers))] {
				c.keep(tx)
			}
			tx.PutArchive(&state.Archive{Upto: index})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *customer) keep(tx *state.Tx) {
	wallet := *tx.Wallet(c.ref)
	wallet.Available -= charge * int64(c.runs)
	wallet.Sealed, wallet.ArchivedSum = wallet.Available, wallet.Available
	wallet.Sequence, wallet.Archived = uint64(c.runs), uint64(c.runs)
	tx.PutWallet(&wallet)
	last := map[ids.ID]ids.ID{}
	for _, kept := range c.newest {
		tx.PutJob(kept.job)
		tx.PutEntry(kept.entry)
		last[kept.job.Scraper] = kept.job.ID
	}
	for i, id := range c.scrapers {
		if c.past[i] == nil && last[id].IsZero() {
			continue
		}
		scraper := *tx.Scraper(id)
		scraper.Past, scraper.LastJob = c.past[i], last[id]
		if scraper.LastJob.IsZero() {
			scraper.LastJob = scraper.Past.Shown
		}
		tx.PutScraper(&scraper)
	}
}

// Backup writes the state as a backup.
func (h *History) Backup(to io.Writer) error {
	index, now := h.store.Progress()
	return backup.Write(to, backup.Header{Cluster: h.cluster, Shards: h.config.Shards,
		Index: index, Term: 1, Taken: now}, h.store.Snapshot().Write)
}

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

const (
	shards    = 2
	pagePrice = 150
	day       = 24 * 60 * 60 * 1000 // in milliseconds
)

// prices of every tier and endpoint: one endpoint costs more than a browser.
var prices = price.List{
	{RowKey: "tier:plain", Kind: "TIER", Label: "Plain", Micros: pagePrice},
	{RowKey: "tier:render", Kind: "TIER", Label: "Render", Micros: 4*pagePrice + 7},
	{RowKey: "tier:super", Kind: "TIER", Label: "Super", Micros: 10 * pagePrice},
	{RowKey: "tier:render+super", Kind: "TIER", Label: "Render plus Super", Micros: 25 * pagePrice},
	{RowKey: "plugin:" + model.ProductPageTag, Kind: "PLUGIN", Label: "Product pages",
		Micros: pagePrice},
	{RowKey: "plugin:" + model.ProductListTag, Kind: "PLUGIN", Label: "Product lists",
		Micros: 2 * pagePrice},
	{RowKey: "plugin:" + model.SearchTag, Kind: "PLUGIN", Label: "Search", Micros: 9 * pagePrice},
	{RowKey: "plugin:" + model.WebsiteContacts, Kind: "PLUGIN", Label: "Contacts",
		Micros: pagePrice},
	{RowKey: price.DomainKey("h2"), Kind: price.Domain, Label: "Dear site", Micros: 7 * pagePrice},
	{RowKey: price.DomainKey("h0"), Kind: price.Domain, Label: "Free site", Off: true},
	{RowKey: price.DomainKey("h1"), Kind: price.Domain, Label: "Cheap site", Micros: 11},
}

// limits of website contacts, small enough to be reached.
var limits = model.DailyLimits{Reads: 9, Uncharged: 3, PerDomain: 4}

// link is the truth about one start address.
type link struct {
	host  int
	pages int  // of the chain
	bad   bool // the last page fails for good
	free  bool // a website that is not charged
	// changing: each fetch of a page may find the chain's end there, or a next page.
	changing bool
}

// runTruth is the expected result of a run.
type runTruth struct {
	job      ids.ID
	scraper  ids.ID
	customer string
	list     ids.ID
	links    []link
	tag      string // of its endpoint, "" for none
	tiers    model.TierSet
	launched bool
}

type unitKey struct {
	job  ids.ID
	unit model.Unit
}

type seqKey struct {
	job ids.ID
	seq uint32
}

// item is a record of the pages or receipts topic.
type item struct {
	page    *model.Page
	receipt *model.Receipt
	marker  *model.Marker
}

// openTask is a task that a fetcher holds open.
type openTask struct {
	task model.Task
	page uint32
	left uint32
}

// world is everything: the control plane, the topics, the row store and the volatile roles.
type world struct {
	r     *rand.Rand
	ids   ids.Sequence
	now   int64 // milliseconds
	index uint64

	voters [3]voter
	ticks  *rand.Rand // for the clocks only
	leads  int        // index of the voter

	machine *fsm.FSM
	leader  *steps.Steps
	term    uint64
	window  int

	tasks    [shards][][]byte
	pages    [shards][]item
	receipts [shards][]item
	// tasks that an earlier leader's log accepted and has not written yet
	late [shards][][]byte

	store    *memoryStore
	past     pastWorld
	stalled  bool
	harmed   bool // customers and operators act
	under    *int // the leader's step that is under way
	between  bool // others act within it
	closing  map[ids.ID]bool
	failed   error // error of what they did
	lossy    bool  // most tasks are lost, so that some seqs run out of attempts
	backup   []byte
	restored bool // to a backup, at least once
	checked  uint64
	open     [shards]map[seqKey]*openTask
	newest   [shards]uint64 // number of the newest task that a shard's holder took
	returned []model.Marker // came back and wait to be handled
	runs     []*runTruth

	fetched  map[unitKey]int
	cut      map[unitKey]int // how many of these ended with their lease
	absences int
	// units that a settled receipt called delivered
	delivered map[ids.ID]map[model.Unit]bool
	funded    map[string]int64
}

func newWorld(seed uint64) (*world, error) {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), ticks: rand.New(rand.NewPCG(seed, 8)),
		now: 1_800_000_000_000, machine: fsm.New(),
		store: newMemoryStore(), fetched: map[unitKey]int{}, cut: map[unitKey]int{},
		delivered: map[ids.ID]map[model.Unit]bool{},
		funded:    map[string]int64{}, closing: map[ids.ID]bool{}}
	w.window, w.past.keep = 1+w.r.IntN(8), uint32(w.r.IntN(3))
	w.changeClocks()
	for s := range shards {
		w.open[s] = map[seqKey]*openTask{}
	}
	_, err := w.propose(context.Background(),
		command.CreateClusterPayload{Version: command.Newest, ID: w.ids.New(), Shards: shards,
			FreeGrant: int64(w.r.IntN(4)), Prices: prices})
	if err != nil {
		return nil, err
	}
	for c := range 1 + w.r.IntN(2) {
		if err := w.addCustomer("customer-" + strconv.Itoa(c)); err != nil {
			return nil, err
		}
	}
	w.store.read = w.meanwhile
	return w, w.lead()
}

// addCustomer makes a customer with some money, a group, and one to three scrapers. Their runs are
// launched now or later.
func (w *world) addCustomer(ref string) error {
	ctx := context.Background()
	if _, err := w.propose(ctx,
		command.OpenCustomerPayload{Customer: ref, Entry: w.ids.New()}); err != nil {
		return err
	}
	money := []int{100, 100, w.r.IntN(8), 0}[w.r.IntN(4)]*pagePrice + w.r.IntN(pagePrice)
	if money > 0 {
		if err := w.topUp(ref, int64(money)); err != nil {
			return err
		}
	}
	group := w.ids.New()
	if _, err := w.propose(ctx,
		command.PutGroupPayload{Create: true, ID: group, Customer: ref, Name: "g"}); err != nil {
		return err
	}
	for n := range 1 + w.r.IntN(2) {
		truth := w.newRun(ref)
		put := command.PutScraperPayload{Create: true, ID: truth.scraper, Customer: ref,
			Group: group,
			Spec:  model.Scraper{Name: "s" + strconv.Itoa(n), Type: model.SingleProduct}}
		maxPages := 30
		switch truth.tag {
		case model.ProductPageTag, model.ProductListTag:
			put.Spec.Type, maxPages = model.Marketplace, 1
			put.Spec.Config = &model.ScraperConfig{EndpointTag: truth.tag}
		case model.SearchTag:
			put.Spec.Type, maxPages = model.SearchEngineSearch, 1
		case model.WebsiteContacts:
			put.ListRun, put.Tag, maxPages = true, truth.tag, 1
		}
		if maxPages > 1 && slices.ContainsFunc(truth.links,
			func(l link) bool { return l.pages > 1 }) {
			put.Spec.SourceConfig.Pagination = &model.Pagination{Type: model.NextLink,
				Max: &maxPages}
		}
		if _, err := w.propose(ctx, put); err != nil {
			return err
		}
		w.runs = append(w.runs, truth)
	}
	return nil
}

// newRun makes a future run, with or without an endpoint, over one to twelve links.
func (w *world) newRun(customer string) *runTruth {
	truth := &runTruth{job: w.ids.New(), scraper: w.ids.New(), customer: customer,
		list: w.ids.New()}
	truth.tag = []string{"", "", "", "", model.ProductPageTag, model.ProductListTag,
		model.SearchTag, model.WebsiteContacts,
		model.WebsiteContacts}[w.r.IntN(9)]
	truth.tiers = model.TiersOf(model.Plain)
	endpoint, _ := model.EndpointOf(truth.tag)
	if endpoint.Tiers == 0 && w.r.IntN(3) == 0 {
		truth.tiers = model.AllTiers
	}
	chains := truth.tag == "" && w.r.IntN(3) == 0
	for range 1 + w.r.IntN(12) {
		l := link{host: w.r.IntN(3), pages: 1, bad: truth.tag != model.WebsiteContacts &&
			w.r.IntN(10) == 0}
		l.free = truth.tag == model.WebsiteContacts && w.r.IntN(3) == 0
		if chains {
			l.pages = []int{1, 1, 2, 3, 5, 12, 25}[w.r.IntN(7)]
			l.changing = w.r.IntN(4) == 0
		}
		truth.links = append(truth.links, l)
	}
	return truth
}

func (w *world) topUp(ref string, micros int64) error {
	w.funded[ref] += micros
	_, err := w.propose(context.Background(),
		command.AdjustWalletPayload{Customer: ref, Entry: w.ids.New(), Amount: micros})
	return err
}

// launch starts a run that has not started. Without money it is refused and never runs.
func (w *world) launch(truth *runTruth) error {
	if truth.launched {
		return nil
	}
	truth.launched = true
	var urls []string
	for seq, l := range truth.links {
		urls = append(urls, fmt.Sprintf("http://h%d/%s/%d", l.host, truth.job, seq))
	}
	// The list goes on behind the run's links.
	w.store.lists[truth.list] = append(slices.Clone(urls), "http://h0/behind", "http://h1/behind")
	endpoint, _ := model.EndpointOf(truth.tag)
	payload := command.LaunchRunPayload{Job: truth.job, Entry: w.ids.New(),
		Customer: truth.customer, Scraper: truth.scraper,
		List: truth.list, Links: uint32(len(urls)), Tiers: truth.tiers, Charge: endpoint.Charge}
	if endpoint.Daily != (model.DailyLimits{}) {
		payload.Daily = limits
	}
	if w.r.IntN(3) == 0 {
		limit := int64(w.r.IntN(10*pagePrice) + 1)
		payload.MaxCharge = &limit
	}
	_, err := w.propose(context.Background(), payload)
	if err != nil && strings.Contains(err.Error(), "WALLET_INSUFFICIENT_BALANCE") {
		w.runs = slices.DeleteFunc(w.runs, func(t *runTruth) bool { return t == truth })
		return nil
	}
	return err
}

// propose applies a command as Raft would. Now and then the proposer misses the answer and proposes
// the id again.
func (w *world) propose(_ context.Context, payload command.Payload) (any, error) {
	id := w.ids.New()
	data, err := w.machine.Encode(id, w.stamp(), payload, nil)
	if err != nil {
		return nil, err
	}
	w.index++
	result := w.machine.Apply(w.index, data)
	if w.r.IntN(20) == 0 {
		if data, err = w.machine.Encode(id, w.stamp(), payload, nil); err != nil {
			return nil, err
		}
		w.index++
		w.machine.Apply(w.index, data)
	}
	return result.Value, result.Err
}

// lead begins a new leadership over the present state.
func (w *world) lead() error {
	w.term++
	w.changeClocks()
	view := func() *state.View { return w.machine.Store().View() }
	d := dispatch.New(dispatch.Config{Leader: w.term, Newest: w.machine.Store().LastDispatch(),
		Shards: shards, Window: w.window,
		HostOf:   func(url string) string { return strings.SplitN(url, "/", 4)[2] },
		ShardOf:  func(host string) int { return int(host[1]-'0') % shards },
		DomainOf: func(url string) uint64 { return uint64(strings.SplitN(url, "/", 4)[2][1]) },
		Pace:     func(*state.View, *state.Job) float64 { return 1 },
		Now:      func() time.Time { return time.UnixMilli(w.now) }, View: view})
	for _, job := range view().OpenJobs() {
		w.machine.Store().ReadRun(job.ID, func(run *state.Run) { d.Adopt(job, run) })
	}
	w.machine.Observe(d.Applied)
	w.leader = &steps.Steps{Counts: &steps.Counts{}, Dispatcher: d, State: w.machine.Store,
		Propose: w.propose, Store: w.store, Log: taskLog{w: w},
		IDs: &w.ids, NowMicros: func() int64 { return w.now * 1000 },
		Unread: func(err error) { w.failed = errors.Join(w.failed, err) },
		Point:  func(string) { w.meanwhile() }}
	return nil
}

// markAll sends a marker to every shard, as a new leader does.
func (w *world) markAll() error {
	for s := range shards {
		if _, err := w.leader.Mark(s); err != nil {
			return err
		}
	}
	return nil
}

// restart replaces the state by its own snapshot, under a new leadership.
func (w *world) restart() error {
	var before bytes.Buffer
	if err := w.machine.Snapshot().Write(&before); err != nil {
		return err
	}
	fresh := fsm.New()
	if err := fresh.Restore(bytes.NewReader(before.Bytes())); err != nil {
		return err
	}
	var after bytes.Buffer
	if err := fresh.Snapshot().Write(&after); err != nil {
		return err
	}
	if !bytes.Equal(before.Bytes(), after.Bytes()) {
		return fmt.Errorf("a restored state has another snapshot")
	}
	if err := w.sameDigest(before.Bytes()); err != nil {
		return err
	}
	w.machine = fresh
	return w.lead()
}

// sameDigest checks that the incremental digest of the state equals that of its snapshot. The state
// cannot be used afterwards.
func (w *world) sameDigest(snapshot []byte) error {
	restored := fsm.New()
	if err := restored.Restore(bytes.NewReader(snapshot)); err != nil {
		return err
	}
	w.machine.Observe(nil)
	index, now := w.machine.Store().Progress()
	data, err := w.machine.Encode(w.ids.New(), now+time.Minute.Milliseconds(),
		command.TickPayload{}, nil)
	if err != nil {
		return err
	}
	for _, m := range []*fsm.FSM{w.machine, restored} {
		m.Apply(index+1, data)
	}
	went, came := w.machine.Store().Digests(), restored.Store().Digests()
	if len(came) != 1 || went[len(went)-1] != came[0] {
		return fmt.Errorf("a restored state has another digest: %v, want the last of %v", came,
			went)
	}
	return nil
}

// restore takes a backup, or restores the newest one as an operator does. The row store and the log
// stay as they are.
func (w *world) restore() error {
	if w.backup == nil || w.r.IntN(3) == 0 {
		var file bytes.Buffer
		err := w.machine.Snapshot().Write(&file)
		w.backup = file.Bytes()
		return err
	}
	w.restored = true
	store, err := state.Restore(bytes.NewReader(w.backup))
	if err != nil {
		return err
	}
	if _, err := store.Succeed(w.machine.Store(),
		state.Restoration{Generation: w.ids.New()}); err != nil {
		return err
	}
	var file bytes.Buffer
	if err := store.Snapshot().Write(&file); err != nil {
		return err
	}
	w.machine = fsm.New()
	if err := w.machine.Restore(&file); err != nil {
		return err
	}
	for _, truth := range w.runs { // what was launched since is launched again
		known, err := w.job(truth.job)
		if err != nil {
			return err
		}
		if truth.launched && known == nil {
			truth.job, truth.list, truth.launched = w.ids.New(), w.ids.New(), false
		}
	}
	return w.lead()
}

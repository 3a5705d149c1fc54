package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/work"
)

func TestMain(m *testing.M) {
	// The tests wait for timers, not for processors. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// Tests kill nodes at any moment. raft 1.8.0 then drops entries that are committed and not
	// applied, without answering those that wait. fasthttp keeps a goroutine for ever, and takes up
	// to 10 s to end another.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*deferError).Error"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// named opens a customer. Each grant needs an entry of its own: two with one id would be one entry.
func named(ref string) client.OpenCustomer {
	return client.OpenCustomer{Customer: ref, Entry: ids.Random{Now: time.Now}.New()}
}

func openCustomer(t *testing.T, c client.Client, ref string) client.Customer {
	t.Helper()
	customer, err := client.Do(patient(t), c, named(ref), nil)
	if err != nil {
		t.Fatal(err)
	}
	return customer
}

func fresh(t *testing.T, c client.Client) *client.View {
	t.Helper()
	view, err := c.Fresh(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestStateOutlivesARestart(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	first := serve(t, config)
	opened := openCustomer(t, first, "ann")
	first.stop()

	view := fresh(t, serve(t, config))
	if known := view.Customer("ann"); known == nil || *known != opened {
		t.Fatalf("customer after a restart: %+v, want %+v", known, opened)
	}
	if got := view.Wallet("ann").Free; got != config.FreeGrant {
		t.Fatalf("%d free requests, want %d", got, config.FreeGrant)
	}
	if view.Cluster().Shards != testShards || len(view.Shards()) != testShards {
		t.Fatal("the cluster was not created with its shards")
	}
}

// A cluster older than an endpoint gets its price. A price that an operator removed does not come
// back.
func TestPricesOfNewEndpoints(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	has := func(c client.Client, rowKey string) bool {
		return slices.ContainsFunc(fresh(t, c).CurrentPrices().Rows,
			func(p price.Row) bool { return p.RowKey == rowKey })
	}
	contacts, render := model.EndpointRow(model.WebsiteContacts), model.Render.PriceRow()
	older := config
	older.Prices = config.Prices[:4]
	serve(t, older).stop()
	newer := serve(t, config)
	if !has(newer, contacts) || !has(newer, render) ||
		fresh(t, newer).CurrentPrices().Version != 2 {
		t.Fatalf("the prices are %+v", fresh(t, newer).CurrentPrices())
	}
	if _, err := client.Do(patient(t), newer, client.PutPrices{Rows: config.Prices[:1]},
		nil); err != nil {
		t.Fatal(err)
	}
	newer.stop()
	if again := serve(t, config); has(again, contacts) || has(again, render) {
		t.Errorf("the prices are %+v", fresh(t, again).CurrentPrices())
	}
}

// What is on disk while the server works is what a kill leaves.
func TestStateOutlivesAKill(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	first := serve(t, config)
	for n := range 50 {
		openCustomer(t, first, fmt.Sprint(n))
	}
	killed := config
	killed.Dir = t.TempDir()
	if err := os.CopyFS(killed.Dir, os.DirFS(config.Dir)); err != nil {
		t.Fatal(err)
	}
	if got := len(fresh(t, serve(t, killed)).Customers()); got != 50 {
		t.Fatalf("%d customers after a kill, want 50", got)
	}
}

func TestStateOutlivesSnapshots(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.Snapshots = Snapshots{Entries: 8, Keep: 2, Every: 5 * time.Millisecond}
	taken := make(chan struct{}, 1)
	config.Point = func(name string) {
		if name == "raft.after_snapshot" {
			select {
			case taken <- struct{}{}:
			default:
			}
		}
	}
	first := serve(t, config)
	for n := range 40 {
		openCustomer(t, first, fmt.Sprint(n))
	}
	select {
	case <-taken:
	case <-patient(t).Done():
		t.Fatal("no snapshot was taken")
	}
	first.stop()
	if files, err := filepath.Glob(filepath.Join(config.Dir, "raft", "snapshots", "*",
		"state.bin")); err != nil || len(files) == 0 {
		t.Fatalf("no snapshot is on disk: %v", err)
	}
	second := serve(t, config)
	if got := len(fresh(t, second).Customers()); got != 40 {
		t.Fatalf("%d customers after a restore, want 40", got)
	}
	openCustomer(t, second, "one more")
}

func TestDirectoryIsOneProcessAtATime(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	serve(t, config)
	second, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil {
		t.Fatal("a second server runs on the same directory")
	}
	if _, err := second.Client().Fresh(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Fatalf("Fresh of a server that did not start: %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Fatal("an empty configuration is taken")
	}
	config := testConfig(t, t.TempDir())
	first := serve(t, config)
	first.stop()
	config.Shards = testShards + 1
	if _, err := New(config); err == nil {
		t.Fatal("a number of shards that the log does not have is taken")
	}
}

func TestCommandIDIsAppliedOnce(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	r := serve(t, config)
	openCustomer(t, r, "ann")
	ctx, id := patient(t), config.IDs.New()
	adjust := command.AdjustWalletPayload{Customer: "ann", Entry: config.IDs.New(), Amount: 100}
	var results []fsm.Result
	for range 2 {
		result, err := r.proposer.propose(ctx, id, adjust, nil)
		if err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
		results = append(results, result)
	}
	if fmt.Sprint(results[0]) != fmt.Sprint(results[1]) {
		t.Fatalf("the same id answered %+v, then %+v", results[0], results[1])
	}
	if got := fresh(t, r).Wallet("ann").Available; got != 100 {
		t.Fatalf("balance %d after the same id twice, want 100", got)
	}
}

func TestClaimIsCompletedUnderItsTicket(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	r := serve(t, config)
	customer, scraper := prepare(t, r, config)
	ctx := patient(t)
	call := func() *client.Call {
		return &client.Call{Customer: customer, Operation: "run", Key: "k", Request: 1}
	}
	mine, list := call(), config.IDs.New()
	claims := client.ClaimCall{List: list, Node: config.Node, Boot: config.Boot}
	if replay, err := client.Begin[client.LaunchRun](ctx, r, claims, mine); err != nil ||
		replay != nil || mine.Replayed {
		t.Fatalf("claim: %v, %v, replayed %v", replay, err, mine.Replayed)
	}
	if claim := fresh(t, r).ClaimOfList(list); claim == nil {
		t.Fatalf("claim: %+v", claim)
	}
	if _, err := client.Do(ctx, r, client.ClaimCall{},
		call()); fault.CodeOf(err) != fault.IdempotencyInFlight {
		t.Fatalf("a second claim: %v", err)
	}
	if _, err := client.Do(ctx, r, client.ReleaseClaim{}, mine); err != nil {
		t.Fatal(err)
	}
	mine = call()
	if _, err := client.Do(ctx, r,
		client.ClaimCall{List: list, Node: config.Node, Boot: config.Boot}, mine); err != nil {
		t.Fatalf("a claim after the release: %v", err)
	}
	config.Store.(*lists).add(list, "https://a.example/")
	run := client.LaunchRun{Job: config.IDs.New(), Entry: config.IDs.New(), Customer: customer,
		Scraper: scraper, List: list,
		Links: 1, Tiers: model.TiersOf(model.Plain)}
	launched, err := client.Do(ctx, r, run, mine)
	if err != nil || mine.Replayed {
		t.Fatalf("launch under the ticket: %v, replayed %v", err, mine.Replayed)
	}
	again := call()
	replay, err := client.Begin[client.LaunchRun](ctx, r, client.ClaimCall{}, again)
	if err != nil || !again.Replayed || *replay != launched {
		t.Fatalf("a claim after the effect: %+v, %v, replayed %v", replay, err, again.Replayed)
	}
}

func TestOrphanedListsAreDropped(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store := config.Store.(*lists)
	first := serve(t, config)
	customer, scraper := prepare(t, first, config)
	launch(t, first, config, customer, scraper, 3)
	first.stop()

	madeIn := func(d time.Duration) ids.ID {
		return ids.Random{Now: func() time.Time { return time.Now().Add(d) }}.New()
	}
	// others: older than the cluster
	others, orphan, young := madeIn(-time.Hour), madeIn(time.Second), madeIn(time.Hour)
	for _, list := range []ids.ID{others, orphan, young} {
		store.add(list, "https://a.example/")
	}
	config.Boot = madeIn(time.Minute)
	dropOrphans(t, serve(t, config), func() bool { return !store.has(orphan) })
	if !store.has(young) || !store.has(others) || len(store.links) != 3 {
		t.Fatalf("%d lists are left, want the run's, the young one and that of another cluster",
			len(store.links))
	}
}

// dropOrphans runs the removal of orphans twice at once on the leader, until gone is true.
func dropOrphans(t *testing.T, r *running, gone func() bool) {
	t.Helper()
	orphans := r.Orphans()
	until(t, "the removal of an orphan", func() bool {
		if !orphans.Ready() {
			return false
		}
		var owners sync.WaitGroup
		for range 2 { // at once
			owners.Go(func() {
				if _, err := orphans.Step(patient(t), work.Item{}); err != nil {
					t.Error(err)
				}
			})
		}
		owners.Wait()
		return gone()
	})
}

// The rows and the list of a trial are removed once its caller has had time to read them.
func TestTrialsAreCleanedUp(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store := config.Store.(*lists)
	first := serve(t, config)
	customer, scraper := prepare(t, first, config)
	run := launch(t, first, config, customer, scraper, 3)
	trial := client.LaunchRun{Job: config.IDs.New(), Entry: config.IDs.New(), Customer: customer,
		List: config.IDs.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain), Trial: &client.Trial{Source: model.SourcePreviewURL}}
	store.add(trial.List, "https://a.example/")
	if _, err := client.Do(patient(t), first, trial, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(patient(t), first, client.StopRun{Customer: customer, Job: trial.Job},
		nil); err != nil {
		t.Fatal(err)
	}
	store.mu.Lock()
	if store.emptied[trial.Job] || store.links[trial.List] == nil {
		t.Error("the trial is cleaned up at once")
	}
	store.mu.Unlock()
	for ctx := patient(t); ; {
		job, changed := first.View().WatchJob(trial.Job)
		if job.Closed {
			break
		}
		cancelled := model.Receipt{Job: trial.Job, Outcome: model.Cancelled}
		if err := first.Settle(ctx, []model.Receipt{cancelled}, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the trial does not close: %+v", job)
		}
	}
	first.stop()
	config.Clock, config.Boot = later{config.Clock}, config.IDs.New()
	dropOrphans(t, serve(t, config), func() bool { return !store.has(trial.List) })
	store.mu.Lock()
	defer store.mu.Unlock()
	if !store.emptied[trial.Job] || len(store.emptied) != 1 || len(store.links) != 1 {
		t.Errorf("emptied %v, lists %d; the run is %s", store.emptied, len(store.links), run)
	}
}

func TestLargeSettleIsSplit(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	r := serve(t, config)
	receipts := make([]model.Receipt, 4096)
	for i := range receipts {
		receipts[i] = model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: uint32(i)},
			Outcome: model.Delivered,
			Next:    &model.Continuation{Page: 1, URL: string(make([]byte, 500))}}
	}
	if err := r.Settle(patient(t), receipts, nil); err != nil {
		t.Fatal(err)
	}
}

// Nothing assumes a single voter: with three, the leader is cut off repeatedly while commands are
// proposed.
func TestLeadershipMovesUnderProposals(t *testing.T) {
	t.Parallel()
	nodes, transports := cluster(t, 3)
	leads := func(r *running) bool { return r.holder.Current() != nil }
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { // cuts the leader off and reconnects it, repeatedly
		for {
			for i, r := range nodes {
				if !leads(r) {
					continue
				}
				for j := range transports {
					if j != i {
						transports[i].Disconnect(transports[j].LocalAddr())
						transports[j].Disconnect(transports[i].LocalAddr())
					}
				}
				clock.Pause(t.Context(), r.config.Clock, 400*time.Millisecond)
				for j := range transports {
					transports[i].Connect(transports[j].LocalAddr(), transports[j])
					transports[j].Connect(transports[i].LocalAddr(), transports[i])
				}
			}
			if !clock.Pause(t.Context(), nodes[0].config.Clock, 100*time.Millisecond) {
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	const customers, rounds = 4, 10
	var callers sync.WaitGroup
	for c := range customers {
		callers.Go(func() {
			ref := fmt.Sprint(c)
			insist(t, nodes, ids.ID{1, byte(c)}, command.OpenCustomerPayload{Customer: ref})
			for n := range rounds {
				insist(t, nodes, ids.ID{2, byte(c), byte(n)},
					command.AdjustWalletPayload{Customer: ref, Entry: ids.ID{3, byte(c), byte(n)},
						Amount: 1})
			}
		})
	}
	callers.Wait()
	close(done)
	work.Wait()
	for i, r := range nodes {
		for c := range customers {
			ref := fmt.Sprint(c)
			for ctx := patient(t); ; {
				if w := r.View().Wallet(ref); w != nil && w.Available == rounds &&
					w.Sequence == rounds+1 {
					break
				}
				if !clock.Pause(ctx, r.config.Clock, 5*time.Millisecond) {
					t.Fatalf("node %d: wallet %+v, want %d", i, r.View().Wallet(ref), rounds)
				}
			}
		}
	}
}

// insist proposes the same command id to any leader until its outcome is known.
func insist(t *testing.T, nodes []*running, id ids.ID, payload command.Payload) {
	ctx := patient(t)
	for {
		for _, r := range nodes {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			result, err := r.proposer.propose(short, id, payload, nil)
			cancel()
			if err == nil {
				if result.Err != nil {
					t.Errorf("%T: %v", payload, result.Err)
				} else if view, err := r.Fresh(ctx); err == nil && view.Result(id) == nil {
					t.Errorf("%T was applied and a fresh view does not hold it", payload)
				}
				return
			}
			if fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%T: %v", payload, err)
				return
			}
		}
		if ctx.Err() != nil {
			t.Errorf("%T: no outcome", payload)
			return
		}
	}
}

// cluster runs voters with an in-memory transport.
func cluster(t *testing.T, size int) ([]*running, []*raft.InmemTransport) {
	t.Helper()
	var transports []*raft.InmemTransport
	var voters []raft.Server
	for i := range size {
		address, transport := raft.NewInmemTransportWithTimeout("", 100*time.Millisecond)
		transports = append(transports, transport)
		voters = append(voters,
			raft.Server{ID: raft.ServerID(fmt.Sprint("node-", i)), Address: address})
	}
	for i, from := range transports {
		for j, to := range transports {
			if i != j {
				from.Connect(to.LocalAddr(), to)
			}
		}
	}
	var nodes []*running
	for i := range size {
		config := testConfig(t, t.TempDir())
		config.Node, config.transport, config.voters = string(voters[i].ID), transports[i], voters
		nodes = append(nodes, start(t, config))
	}
	return nodes, transports
}

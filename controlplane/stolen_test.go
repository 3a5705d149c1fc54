package controlplane

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// These tests do what SECURITY.md says that stolen certificates can do, with nothing else.

// steal adds a node whose certificate has one role, as a thief would.
func (c *nodes) steal(role string, change func(*Config)) (n int) {
	c.t.Helper()
	config := c.config("stolen-"+role, role)
	config.Log, config.Store = c.configs[0].Log, c.store
	change(&config)
	n = len(c.configs)
	c.configs, c.running = append(c.configs, config), append(c.running, nil)
	c.start(n)
	c.add(n, false)
	c.ready(n)
	return n
}

// A stolen fetcher certificate gets most shards, whose pages then nobody fetches. Once the thief is
// gone, each page is fetched and charged once.
func TestStolenFetcherHoldsShardsAndFetchesNothing(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 2)
	thief := c.steal(identity.Fetcher, func(config *Config) { config.Capacity = MaxCapacity })
	ctx, stop := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	defer beating.Wait()
	defer stop()
	held := make(chan int, 1)
	beating.Go(func() {
		beat := client.Heartbeat{Node: c.configs[thief].Node, Boot: c.at(thief).config.Boot}
		for clock.Pause(ctx, c.configs[thief].Clock, c.configs[thief].Lease/5) {
			leases, err := c.at(thief).Heartbeat(ctx, beat)
			if err != nil {
				continue
			}
			beat.Holding = leases.Hold
			select {
			case <-held:
			default:
			}
			held <- len(leases.Hold)
		}
	})
	until(t, "a thief with shards", func() bool { return <-held > 0 })
	for n := 1; n <= 2; n++ { // of 4 shards with weights 8, 1 and 1
		fetchAll(t, c.at(n), c.at(n).config, 0)
	}
	until(t, "a thief with all shards but one", func() bool { return <-held == testShards-1 })

	customer, scraper := prepare(t, c.at(0), c.configs[0])
	const links = 70
	job := launch(t, c.at(0), c.configs[0], customer, scraper, links)
	until(t, "the pages of the honest fetcher", func() bool {
		return c.at(0).View().Job(job).Delivered > 0
	})
	if run := c.at(0).View().Job(job); run.Closed || run.Delivered == links {
		t.Errorf("the run has ended with %d pages: the thief holds nothing up", run.Delivered)
	}
	stop()
	beating.Wait()
	if run := finished(t, c.at(0), job); run.State != model.Completed || run.Delivered != links ||
		run.Charged != (links-5)*150 {
		t.Errorf("without the thief the run ends %s with %d pages, charged %d", run.State,
			run.Delivered, run.Charged)
	}
}

// Even a certificate of little power reads everything that the service knows of a customer.
func TestStolenCertificatesReadTheState(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	customer, scraper := prepare(t, c.at(0), c.configs[0])
	key := client.MintKey{ID: c.configs[0].IDs.New(), Customer: customer, Prefix: "abcdefg",
		Hash: [32]byte{7}, Scope: model.ScopeUser}
	if _, err := client.Do(patient(t), c.at(0), key, nil); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{identity.Fetcher, identity.Ingest, identity.Billing} {
		view := fresh(t, c.at(c.steal(role, func(*Config) {})))
		if view.Wallet(customer).Balance() <= 0 || view.Scraper(scraper) == nil {
			t.Errorf("%s sees no wallet or no scraper", role)
		}
		if got := view.KeyByPrefix(key.Prefix); got == nil || got.Hash != key.Hash {
			t.Errorf("%s sees of a key %+v", role, got)
		}
	}
}

// A stolen ingest certificate can lie about work: invent counts, and claim that rows are gone. That
// costs the customer nothing.
func TestStolenIngestEndsWorkAsItLikes(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	customer, scraper := prepare(t, c.at(0), c.configs[0])
	thief := c.at(c.steal(identity.Ingest, func(*Config) {}))
	before := fresh(t, c.at(0)).Wallet(customer).Balance()
	do := func(by *running, payload command.Payload) {
		t.Helper()
		if _, err := by.Propose(patient(t), payload, nil); err != nil {
			t.Fatalf("%T: %v", payload, err)
		}
	}
	begin := client.BeginReExtract{Job: c.configs[0].IDs.New(), Customer: customer,
		Scraper: scraper, From: c.configs[0].IDs.New(), Links: 9,
		Recipe: model.Recipe{Type: model.SingleProduct}}
	do(c.at(0), begin)
	do(thief, client.EndReExtract{Job: begin.Job,
		Done: client.ReExtracted{Items: 12_345, Pages: 9, Delivered: 9}})
	view := fresh(t, c.at(0))
	if run := view.Job(begin.Job); run.State != model.Completed || run.Items != 12_345 ||
		view.Wallet(customer).Balance() != before {
		t.Errorf("%+v, %d paid", run, before-view.Wallet(customer).Balance())
	}
	deletion := client.Deletion{Customer: customer, Operation: client.OpDeleteScraper,
		Target: scraper, Query: client.WithData}
	do(c.at(0), client.PreviewDelete{Deletion: deletion, Token: "t"})
	do(c.at(0), client.DeleteScraper{Deletion: deletion, Token: "t"})
	removals := fresh(t, c.at(0)).RemovalsOf(customer)
	if len(removals) != 1 {
		t.Fatalf("%d removals of rows", len(removals))
	}
	do(thief, client.ForgetRemovals{Removals: []client.RemovalRef{
		{Group: removals[0].Group, Scraper: removals[0].Scraper}}})
	if left := fresh(t, c.at(0)).RemovalsOf(customer); len(left) != 0 {
		t.Error("the removal is remembered")
	}
}

// A stolen billing certificate can charge pages that nobody fetched, up to what is reserved for the
// pages that are out. While nobody settles, no more pages go out than the window allows.
func TestStolenBillingChargesAndHoldsUp(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	const window, links = 20, 100
	c.kill(0)
	c.configs[0].Window = window
	c.start(0)
	c.ready(0)
	thief := c.at(c.steal(identity.Billing, func(*Config) {}))
	customer, scraper := prepare(t, c.at(0), c.configs[0])
	before := fresh(t, c.at(0)).Wallet(customer).Balance()
	holdAll(t, c.at(0), c.at(0).config)
	job := launch(t, c.at(0), c.configs[0], customer, scraper, links)
	out := func() int {
		status, err := c.at(0).Status(patient(t))
		if err != nil {
			t.Fatal(err)
		}
		return status.Out
	}
	until(t, "a full window", func() bool { return out() == window })
	openCustomer(t, c.at(0), "bob") // the leader goes on
	if got := out(); got != window {
		t.Errorf("%d pages are out, and nobody settles", got)
	}
	settle := func(from, to uint32) error {
		var forged []model.Receipt
		for seq := from; seq < to; seq++ {
			forged = append(forged, model.Receipt{Job: job, Unit: model.Unit{Seq: seq},
				Outcome: model.Delivered, PriceRow: model.Plain.PriceRow(),
				Quantity: math.MaxInt32, Items: 1, Last: true})
		}
		return thief.Settle(patient(t), forged, nil)
	}
	if err := settle(0, window); err != nil {
		t.Fatal(err)
	}
	until(t, "the rest", func() bool { return out() == window })
	run, balance := c.at(0).View().Job(job), fresh(t, c.at(0)).Wallet(customer).Balance()
	most := int64(window) * 150
	if run.Delivered == 0 || before-balance <= 0 || before-balance > most {
		t.Errorf("%d pages that nobody fetched cost %d, want something up to %d", run.Delivered,
			before-balance, most)
	}
	if _, err := client.Do(patient(t), thief, client.AdjustWallet{Customer: customer,
		Entry: c.configs[0].IDs.New(), Amount: -1}, nil); fault.CodeOf(err) != fault.ScopeRejected {
		t.Errorf("a wallet is changed by any other way: %v", err)
	}
}

// holdAll holds every shard as a fetcher does, and reads none.
func holdAll(t *testing.T, r *running, config Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { cancel(); work.Wait() })
	work.Go(func() {
		beat := client.Heartbeat{Node: config.Node, Boot: config.Boot}
		for clock.Pause(ctx, config.Clock, 50*time.Millisecond) {
			if leases, err := r.Heartbeat(ctx, beat); err == nil {
				beat.Holding = leases.Hold
			}
		}
	})
}

// The gossip key in a fetcher's identity allows gossip in another node's name. That node is then
// not heard and cannot join. The key allows nothing else: nobody is admitted under that name.
func TestStolenGossipKeyHidesANode(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	a := r.found("a")
	key := r.config("stolen", []string{identity.Fetcher}).Cluster.Identity.GossipKey
	ghost, err := membership.Open(membership.Config{Name: "b", Cluster: "reef", Key: key,
		Listen: "127.0.0.1:0", Join: r.gossip(), Probe: testProbe, Clock: a.config.Clock,
		Logger: a.config.Logger, Info: membership.Info{Roles: []string{controlPlane},
			Address: freeAddress(t), Version: "1.0.0", Boot: a.config.IDs.New(), Empty: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ghost.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.until("the ghost is heard", func() bool {
		n, err := a.node.Enter()
		if err != nil {
			return false
		}
		defer a.node.Leave()
		_, heard := n.Members.Address("b")
		return heard
	})
	b := r.startNode(r.config("b", []string{controlPlane}, r.gossip()...))
	r.until("the true one is refused", func() bool {
		return r.journal.holds("two nodes have the same name")
	})
	if got := r.servers(); got != "a*" {
		t.Errorf("servers are %s", got)
	}
	select {
	case <-b.Ready():
		t.Error("the true one has joined, and the ghost is heard")
	default:
	}
	if err := ghost.Leave(patient(t)); err != nil {
		t.Fatal(err)
	}
	r.ready(b)
	r.untilServers("a* b")
}

// A stolen API server certificate can do what any customer and any operator may.
func TestStolenAPIServerActsForAll(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	customer, scraper := prepare(t, c.at(0), c.configs[0])
	thief := c.at(c.steal(identity.APIServer, func(*Config) {}))
	for _, payload := range []command.Payload{
		client.MintKey{ID: c.configs[0].IDs.New(), Customer: customer, Prefix: "abcdefg",
			Scope: model.ScopeUser},
		client.AdjustWallet{Customer: customer, Entry: c.configs[0].IDs.New(), Amount: 1 << 40},
		client.LaunchRun{Job: c.configs[0].IDs.New(), Entry: c.configs[0].IDs.New(),
			Customer: customer, Scraper: scraper, List: c.configs[0].IDs.New(), Links: 1,
			Tiers: model.TiersOf(model.Plain)},
		client.BlockCustomer{Customer: customer},
	} {
		if _, err := thief.Propose(patient(t), payload, nil); err != nil {
			t.Errorf("%T: %v", payload, err)
		}
	}
}

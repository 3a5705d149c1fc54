package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// A block stays as it was made, however often it is repeated. Removing it leaves no trace.
func TestBlocksAreIdempotent(t *testing.T) {
	b := newBench(t)
	b.refused(command.BlockCustomerPayload{Customer: "nobody", By: "root"}, fault.NotFound)
	b.refused(command.UnblockCustomerPayload{Customer: "nobody"}, fault.NotFound)
	before := *b.view().Customer("a")
	unblock := command.UnblockCustomerPayload{Customer: "a"}
	if got := b.must(unblock).(state.Customer); got != before {
		t.Errorf("there was no block: %+v", got)
	}
	b.now = 10
	b.must(command.BlockCustomerPayload{Customer: "a", By: "root"})
	b.now = 20
	again := b.must(command.BlockCustomerPayload{Customer: "a", By: "another"}).(state.Customer)
	if !again.Blocked() || again.BlockedAt != 10 || again.BlockedBy != "root" {
		t.Errorf("blocked: %+v", again)
	}
	if b.view().Customer("b").Blocked() {
		t.Error("so is another customer")
	}
	for range 2 {
		after := b.must(unblock).(state.Customer)
		if after != before || *b.view().Customer("a") != before {
			t.Errorf("after the block: %+v, before it %+v", after, before)
		}
	}
}

// Calls admitted before the block launch nothing after it. Their idempotency keys do not keep the
// refusal. Active runs continue.
func TestBlockedCustomersLaunchNothing(t *testing.T) {
	c := calls{trials: newTrials(t)}
	run := func() command.LaunchRunPayload {
		return command.LaunchRunPayload{Job: c.ids.New(), Entry: c.ids.New(), Customer: customer,
			Scraper: c.scraper, List: c.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	}
	before := run()
	c.must(before)
	c.must(command.BlockCustomerPayload{Customer: customer, By: "root"})
	later := run()
	for range 2 {
		if got := c.call(later); fault.CodeOf(got.Err) != fault.CustomerBlocked || got.Replayed {
			t.Fatalf("a launch: %+v", got)
		}
	}
	trial := c.trial(c.scraper, command.Trial{Source: model.SourceSample})
	if err := c.do(trial); fault.CodeOf(err) != fault.CustomerBlocked {
		t.Errorf("a sample: %v", err)
	}
	if kept := c.view().Customer(customer).Claims; kept != 0 {
		t.Errorf("%d keys are kept", kept)
	}
	if c.view().Job(later.Job) != nil || c.view().Entry(later.Entry) != nil {
		t.Error("a refused launch left something")
	}
	c.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: before.Job,
		Seqs: []uint32{0}}}})
	c.must(command.SettlePayload{Receipts: []model.Receipt{{Job: before.Job,
		Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1, Items: 1, Last: true}}})
	c.must(command.CloseRunPayload{Job: before.Job})
	if job := c.view().Job(before.Job); job.State != model.Completed || job.Delivered != 1 {
		t.Errorf("the run from before: %+v", job)
	}
	c.must(command.UnblockCustomerPayload{Customer: customer})
	if got := c.call(later); got.Err != nil || got.Replayed {
		t.Errorf("the same call, once the block is taken back: %+v", got)
	}
}

// Blocks, expiring keys and retention need an upgraded cluster. A key with an expiry is never made
// without one.
func TestNewMembersWaitForTheUpgrade(t *testing.T) {
	m := New()
	apply := func(index uint64, payload command.Payload) error {
		data, err := m.Encode(ids.ID{byte(index)}, 1, payload, nil)
		if err == nil {
			err = m.Apply(index, data).Err
		}
		return err
	}
	if err := apply(1, command.CreateClusterPayload{Version: 1, ID: ids.ID{1},
		Shards: 1}); err != nil {
		t.Fatal(err)
	}
	if err := apply(2, command.OpenCustomerPayload{Customer: "a", Entry: ids.ID{2}}); err != nil {
		t.Fatal(err)
	}
	block := command.BlockCustomerPayload{Customer: "a", By: "root"}
	expires := command.MintKeyPayload{ID: ids.ID{3}, Customer: "a", Prefix: "p", ExpiresAt: 9}
	retains := command.PutGroupPayload{Create: true, ID: ids.ID{5}, Customer: "a", Name: "g",
		Retention: 2}
	for _, payload := range []command.Payload{block, expires, retains} {
		if err := apply(3, payload); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%T before: %v", payload, err)
		}
		if _, err := m.EncodePayload(payload); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%T, sent to the leader before: %v", payload, err)
		}
	}
	if err := apply(3, command.MintKeyPayload{ID: ids.ID{4}, Customer: "a",
		Prefix: "q"}); err != nil {
		t.Errorf("a key that does not expire: %v", err)
	}
	if err := apply(3, command.PutGroupPayload{Create: true, ID: ids.ID{6}, Customer: "a",
		Name: "keeps all"}); err != nil {
		t.Errorf("a group without a retention: %v", err)
	}
	if err := apply(4, command.ActivateVersionPayload{Version: 2}); err != nil {
		t.Fatal(err)
	}
	for i, payload := range []command.Payload{expires, retains, block} {
		if err := apply(5+uint64(i), payload); err != nil {
			t.Errorf("%T after: %v", payload, err)
		}
	}
	view := m.Store().View()
	key := view.Key(ids.ID{3})
	if !view.Customer("a").Blocked() || key.Expired(8) || !key.Expired(9) ||
		view.Key(ids.ID{4}).Expired(1<<62) {
		t.Errorf("after: %+v, %+v", view.Customer("a"), key)
	}
}

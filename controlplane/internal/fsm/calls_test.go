package fsm

import (
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// calls repeats calls of one customer with one key.
type calls struct {
	*trials
	ticket ids.ID
}

func (c calls) call(payload command.Payload) Result {
	c.Helper()
	data, err := c.m.Encode(c.ids.New(), c.now, payload,
		&command.Call{Customer: customer, Operation: "run", Key: "k", Request: 1, Ticket: c.ticket})
	if err != nil {
		c.Fatal(err)
	}
	c.index++
	return c.m.Apply(c.index, data)
}

// TestRefusalsThatPassAreNotKept: after a refusal for lack of money, the customer pays and the same
// key succeeds. It does not matter whether the key was claimed. Until then the call leaves nothing.
func TestRefusalsThatPassAreNotKept(t *testing.T) {
	for name, claims := range map[string]bool{"at once": false, "under a claim": true} {
		t.Run(name, func(t *testing.T) {
			c := calls{trials: newTrialsWith(t, 0, 149)} // a page costs 150
			run := command.LaunchRunPayload{Job: c.ids.New(), Entry: c.ids.New(),
				Customer: customer, Scraper: c.scraper,
				List: c.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
			for range 2 {
				if claims {
					data, err := c.m.Encode(ids.ID{42}, c.now,
						command.ClaimCallPayload{List: run.List},
						&command.Call{Customer: customer, Operation: "run", Key: "k", Request: 1})
					if err != nil {
						t.Fatal(err)
					}
					c.index++
					c.m.Apply(c.index, data)
					c.ticket = ids.ID{42}
				}
				if got := c.call(run); fault.CodeOf(got.Err) != fault.WalletInsufficient ||
					got.Replayed {
					t.Fatalf("without money: %+v", got)
				}
				if kept := c.view().Customer(customer).Claims; kept != 0 {
					t.Fatalf("%d keys are kept", kept)
				}
			}
			c.must(command.AdjustWalletPayload{Customer: customer, Entry: c.ids.New(),
				Amount: 1_000_000})
			first := c.call(run)
			if first.Err != nil || first.Replayed {
				t.Fatalf("with money: %+v", first)
			}
			if again := c.call(run); again.Err != nil || !again.Replayed {
				t.Errorf("once more: %+v", again)
			}
		})
	}
}

// A call renews its own claim. Without a ticket, as in version 1, it renews all claims of that
// start of the node.
func TestClaimsAreRenewed(t *testing.T) {
	b := newBench(t)
	boot, names := ids.ID{5}, []string{"mine", "its neighbour", "of an earlier start"}
	for n, name := range names {
		claim := command.ClaimCallPayload{Node: "n", Boot: boot}
		if n == 2 {
			claim.Boot = ids.ID{6}
		}
		if got := b.under(name, ids.ID{9, byte(n)}, claim); got.Err != nil {
			t.Fatal(got.Err)
		}
	}
	renewed := func(p command.RenewClaimsPayload) (all []string) {
		b.now += time.Minute.Milliseconds()
		b.must(p)
		for _, name := range names {
			if b.view().Claim("a", "run", name).Expires == b.now+claimHeldMillis {
				all = append(all, name)
			}
		}
		return all
	}
	p := command.RenewClaimsPayload{Node: "n", Boot: boot, Ticket: ids.ID{9, 0}}
	if got := renewed(p); !slices.Equal(got, names[:1]) {
		t.Errorf("with a ticket: %q", got)
	}
	p.Ticket = ids.ID{}
	if got := renewed(p); !slices.Equal(got, names[:2]) {
		t.Errorf("without one: %q", got)
	}
}

// TestAnswerOnlyCalls: a command that may only answer changes nothing, whether the key's answer is
// kept or has just expired. Its proposer may have ignored checks that failed.
func TestAnswerOnlyCalls(t *testing.T) {
	c := newTrialsWith(t, 0, 149)
	call := func(name string, answerOnly bool) Result {
		put := command.PutGroupPayload{Create: true, ID: c.ids.New(), Customer: customer,
			Name: name}
		data, err := c.m.Encode(c.ids.New(), c.now, put, &command.Call{Customer: customer,
			Operation: "put", Key: "k", Request: 1, AnswerOnly: answerOnly})
		if err != nil {
			t.Fatal(err)
		}
		c.index++
		return c.m.Apply(c.index, data)
	}
	groups := len(c.view().Groups(customer))
	if got := call("first", true); fault.CodeOf(got.Err) != fault.Unavailable {
		t.Errorf("without an answer: %+v", got)
	}
	if n := len(c.view().Groups(customer)); n != groups ||
		c.view().Answered(customer, "put", "k") {
		t.Errorf("%d groups, then %d", groups, n)
	}
	if got := call("first", false); got.Err != nil || got.Replayed {
		t.Errorf("%+v", got)
	}
	if got := call("second", true); got.Err != nil || !got.Replayed {
		t.Errorf("with an answer: %+v", got)
	}
	if n := len(c.view().Groups(customer)); n != groups+1 ||
		!c.view().Answered(customer, "put", "k") {
		t.Errorf("%d groups, then %d", groups, n)
	}
}

// TestStopsPassAFullTable: a customer whose idempotency keys are used up can still stop its runs,
// and nothing else. A stop leaves no record then, and a repeated one succeeds.
func TestStopsPassAFullTable(t *testing.T) {
	for _, bound := range []state.Customer{{Claims: maxClaims}, {ClaimBytes: maxClaimBytes}} {
		b := newBench(t)
		group, members := b.members("g", 2)
		var jobs []ids.ID
		for _, scraper := range members {
			launched, err := b.launch(scraper)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, launched.Job)
		}
		b.index++
		if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
			c := *tx.Customer("a")
			c.Claims, c.ClaimBytes = bound.Claims, bound.ClaimBytes
			tx.PutCustomer(&c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		start := b.groupLaunch(group, members...)
		for _, p := range []command.Payload{start, command.ClaimCallPayload{}} {
			if got := b.under("start", b.ids.New(), p); fault.CodeOf(got.Err) !=
				fault.IdempotencyOverflow {
				t.Errorf("%T: %+v", p, got)
			}
		}
		for n, p := range []command.Payload{
			command.StopRunPayload{Customer: "a", Scraper: members[0]},
			command.StopGroupPayload{Customer: "a", Group: group},
		} {
			for range 2 {
				if got := b.under("stop", b.ids.New(), p); got.Err != nil || got.Replayed {
					t.Errorf("%T: %+v", p, got)
				}
			}
			if job := b.view().Job(jobs[n]); job.State != model.Stopped {
				t.Errorf("%T: the run is %v", p, job.State)
			}
		}
		if c := b.view().Customer("a"); c.Claims != bound.Claims ||
			c.ClaimBytes != bound.ClaimBytes || b.view().Claim("a", "run", "stop") != nil {
			t.Errorf("%d records of %d bytes are counted", c.Claims, c.ClaimBytes)
		}
	}
}

// TestStopsOfBefore: in version 1 a full table refuses stops, too.
func TestStopsOfBefore(t *testing.T) {
	d := newDefiner(t, 1)
	owner, _ := d.owner(1)
	d.index++
	if err := d.m.Store().Update(d.index, 1, func(tx *state.Tx) error {
		c := *tx.Customer(owner)
		c.Claims = maxClaims
		tx.PutCustomer(&c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	data, err := d.m.Encode(d.id(), 1, command.StopRunPayload{Customer: owner, Job: ids.ID{9}},
		&command.Call{Customer: owner, Operation: "stop", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	d.index++
	if got := d.m.Apply(d.index, data); fault.CodeOf(got.Err) != fault.IdempotencyOverflow {
		t.Errorf("%+v", got)
	}
}

package fsm

import (
	"fmt"
	"reflect"
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
// and nothing else. A repeated stop gets the first one's answer and ends no later run, as long as
// the records of stops last.
func TestStopsPassAFullTable(t *testing.T) {
	const claims, bytes = maxClaims + maxStopClaims, maxClaimBytes + maxStopClaimBytes
	stops := map[string]func(scraper, group ids.ID) command.Payload{
		"a run": func(scraper, _ ids.ID) command.Payload {
			return command.StopRunPayload{Customer: "a", Scraper: scraper}
		},
		"a group": func(_, group ids.ID) command.Payload {
			return command.StopGroupPayload{Customer: "a", Group: group}
		},
	}
	for _, at := range []struct {
		bound state.Customer
		kept  int
	}{
		{state.Customer{Claims: maxClaims}, 1}, {state.Customer{ClaimBytes: maxClaimBytes}, 1},
		{state.Customer{Claims: claims - 1}, 1}, {state.Customer{ClaimBytes: bytes - 1}, 1},
		{state.Customer{Claims: claims}, 0}, {state.Customer{ClaimBytes: bytes}, 0},
	} {
		for name, stop := range stops {
			t.Run(fmt.Sprintf("%s at %d, %d", name, at.bound.Claims, at.bound.ClaimBytes),
				func(t *testing.T) {
					b := newBench(t)
					group, members := b.members("g", 1)
					run := func() ids.ID {
						launched, err := b.launch(members[0])
						if err != nil {
							t.Fatal(err)
						}
						return launched.Job
					}
					first := run()
					b.keep(at.bound.Claims, at.bound.ClaimBytes)
					start := b.groupLaunch(group, members...)
					for _, p := range []command.Payload{start, command.ClaimCallPayload{}} {
						if got := b.under("start", b.ids.New(), p); fault.CodeOf(got.Err) !=
							fault.IdempotencyOverflow {
							t.Errorf("%T: %+v", p, got)
						}
					}
					p := stop(members[0], group)
					answer := b.under("stop", b.ids.New(), p)
					if answer.Err != nil || answer.Replayed ||
						b.view().Job(first).State != model.Stopped {
						t.Fatalf("the first stop: %+v", answer)
					}
					if c := b.view().Customer("a"); c.Claims != at.bound.Claims+at.kept {
						t.Errorf("%d records are counted", c.Claims)
					}
					b.must(command.CloseRunPayload{Job: first})
					later := run()
					again := b.under("stop", b.ids.New(), p)
					if again.Err != nil || again.Replayed != (at.kept == 1) {
						t.Errorf("once more: %+v", again)
					}
					if at.kept == 0 {
						return
					}
					if !reflect.DeepEqual(again.Value, answer.Value) ||
						b.view().Job(later).State.Final() {
						t.Errorf("answered %+v, and the later run is %v", again.Value,
							b.view().Job(later).State)
					}
				})
		}
	}
}

// keep makes the customer a have as many idempotency records, of as many bytes.
func (b *bench) keep(claims, bytes int) {
	b.t.Helper()
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		c := *tx.Customer("a")
		c.Claims, c.ClaimBytes = claims, bytes
		tx.PutCustomer(&c)
		return nil
	}); err != nil {
		b.t.Fatal(err)
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

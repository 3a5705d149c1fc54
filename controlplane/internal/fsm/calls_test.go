package fsm

import (
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
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

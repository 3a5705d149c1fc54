package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// consents makes a bench with the session 1 of ann.
func consents(t *testing.T) *bench {
	b := newBench(t)
	b.now = 1_000_000
	b.must(ann)
	b.must(opening(1))
	return b
}

func asking(n byte) command.IssueCodePayload {
	return command.IssueCodePayload{Hash: state.Hash{n}, Session: state.Hash{1},
		Client: state.Hash{'c'}, Name: "agent", Redirect: state.Hash{'r'},
		Verifier: state.Hash{'v'}, Scope: model.ScopeLLMRead, Resource: "https://s.test"}
}

// redeeming redeems the code n, for tokens and a grant of that number.
func redeeming(n byte) command.RedeemCodePayload {
	return command.RedeemCodePayload{Hash: state.Hash{n}, Client: state.Hash{'c'},
		Redirect: state.Hash{'r'}, Verifier: state.Hash{'v'}, Grant: ids.ID{n},
		Family: state.Hash{n, 'f'}, Refresh: state.Hash{n, 0}, Access: state.Hash{n, 'a', 0}}
}

// refreshing uses the refresh token step of the grant n, and brings the next one.
func refreshing(n, step byte) command.RefreshGrantPayload {
	return command.RefreshGrantPayload{Family: state.Hash{n, 'f'}, Was: state.Hash{n, step},
		Client: state.Hash{'c'}, Refresh: state.Hash{n, step + 1},
		Access: state.Hash{n, 'a', step + 1}}
}

// made applies a command that makes tokens, and reports whether it did.
func (b *bench) made(payload command.Payload) bool {
	b.t.Helper()
	return !b.must(payload).(state.Grant).ID.IsZero()
}

// grant makes the grant n.
func (b *bench) grant(n byte) {
	b.t.Helper()
	b.must(asking(n))
	if !b.made(redeeming(n)) {
		b.t.Fatalf("the code %d makes no grant", n)
	}
}

// A code is valid for one program, address, verifier and service, for a minute. Any use uses it up.
func TestCodes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*command.RedeemCodePayload)
		wait   int64
		made   bool
	}{
		"as it was asked for": {nil, 0, true},
		"no address": {func(p *command.RedeemCodePayload) {
			p.Redirect = state.Hash{}
		}, 0, true},
		"the service": {func(p *command.RedeemCodePayload) {
			p.Resource = "https://s.test"
		}, 0, true},
		"another service": {func(p *command.RedeemCodePayload) {
			p.Resource = "https://t.test"
		}, 0, false},
		"another verifier": {func(p *command.RedeemCodePayload) {
			p.Verifier[0]++
		}, 0, false},
		"another program": {func(p *command.RedeemCodePayload) {
			p.Client[0]++
		}, 0, false},
		"another address": {func(p *command.RedeemCodePayload) {
			p.Redirect[0]++
		}, 0, false},
		"another code": {func(p *command.RedeemCodePayload) {
			p.Hash[0]++
		}, 0, false},
		"at its end":     {nil, state.GrantCodeMillis - 1, true},
		"behind its end": {nil, state.GrantCodeMillis, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := consents(t)
			issued := b.must(asking(7)).(state.GrantCode)
			b.now += c.wait
			if again := b.must(asking(7)).(state.GrantCode); again != issued {
				t.Errorf("issued again: %+v", again)
			}
			p := redeeming(7)
			if c.change != nil {
				c.change(&p)
			}
			if made := b.made(p); made != c.made {
				t.Fatalf("made: %v", made)
			}
			if p.Hash == (state.Hash{7}) && b.made(redeeming(8)) {
				t.Error("a code is good once more")
			}
			if !c.made && b.view().Grant(ids.ID{7}) != nil {
				t.Error("there is a grant")
			}
		})
	}
	b := consents(t)
	b.must(command.EndSessionsPayload{Account: ann.ID, Hash: state.Hash{1}})
	b.refused(asking(1), fault.Unauthorized)
	b.must(opening(2))
	p := asking(1)
	p.Session = state.Hash{2}
	b.must(command.BlockCustomerPayload{Customer: "ann", By: "root"})
	b.refused(p, fault.CustomerBlocked)
	b.must(command.UnblockCustomerPayload{Customer: "ann"})
	b.must(p)
	b.must(command.BlockCustomerPayload{Customer: "ann", By: "root"})
	if b.made(redeeming(1)) {
		t.Error("a blocked customer's code is good")
	}
}

// A second use of a code ends its grant, since the code was stolen. A repeated command is not a
// second use.
func TestCodesThatComeTwice(t *testing.T) {
	b := consents(t)
	b.grant(1)
	if !b.made(redeeming(1)) || b.view().Grant(ids.ID{1}) == nil {
		t.Fatal("a repeat of the command is not answered alike")
	}
	thief := redeeming(1)
	thief.Grant, thief.Client = ids.ID{9}, state.Hash{'x'}
	if b.made(thief) || b.view().Grant(ids.ID{1}) != nil {
		t.Error("the grant goes on")
	}
	if b.made(redeeming(1)) {
		t.Error("a repeat brings the grant back")
	}
	b.grant(2)
	b.now += state.GrantCodeMillis + state.GrantCodeKeptMillis - 1
	b.must(command.TickPayload{})
	if b.view().GrantCode(state.Hash{2}) == nil {
		t.Error("the code is forgotten before its time")
	}
	b.now++
	b.must(command.TickPayload{})
	if b.view().GrantCode(state.Hash{2}) != nil || b.view().Grant(ids.ID{2}) == nil {
		t.Error("the code stays, or its grant went with it")
	}
}

// A refresh token is valid once. For 30 s it gets the same answer again. After that, and for older
// tokens, the grant ends.
func TestRefreshes(t *testing.T) {
	b := consents(t)
	b.grant(1)
	here := func() *state.Grant { return b.view().Grant(ids.ID{1}) }
	if !b.made(refreshing(1, 0)) || here().Access != (state.Hash{1, 'a', 1}) ||
		b.view().GrantByAccess(state.Hash{1, 'a', 0}) != nil ||
		here().AccessUntil != b.now+state.GrantAccessMillis {
		t.Fatalf("refreshed: %+v", here())
	}
	b.now += state.GrantRepeatMillis - 1
	before := *here()
	if again := b.must(refreshing(1, 0)).(state.Grant); again != before || *here() != before {
		t.Errorf("again: %+v", again)
	}
	wrong := refreshing(1, 1)
	wrong.Client[0]++
	other := refreshing(1, 1)
	other.Resource = "https://t.test"
	if b.made(wrong) || b.made(other) || *here() != before {
		t.Error("another program, or for another service, is refused and changes something")
	}
	b.now++
	if b.made(refreshing(1, 0)) || here() != nil {
		t.Error("a refresh token comes twice, and the grant goes on")
	}
	b.grant(2)
	b.must(refreshing(2, 0))
	b.must(refreshing(2, 1))
	if b.made(refreshing(2, 0)) || b.view().Grant(ids.ID{2}) != nil {
		t.Error("one of before the newest two comes, and the grant goes on")
	}
	b.grant(3)
	forged := refreshing(3, 0)
	forged.Was = state.Hash{'?'}
	if b.made(forged) || b.view().Grant(ids.ID{3}) != nil {
		t.Error("a token of the family that never was, and the grant goes on")
	}
	b.grant(4)
	b.must(command.BlockCustomerPayload{Customer: "ann", By: "root"})
	if b.made(refreshing(4, 0)) || b.view().Grant(ids.ID{4}) == nil {
		t.Error("a blocked customer's grant is refreshed, or gone")
	}
}

// A grant ends when nobody refreshes it for 30 days.
func TestIdleGrants(t *testing.T) {
	b := consents(t)
	b.grant(1)
	b.grant(2)
	b.now += state.GrantIdleMillis - 1
	b.must(command.TickPayload{})
	if !b.made(refreshing(1, 0)) {
		t.Fatal("it ends before its time")
	}
	b.now++
	if b.made(refreshing(2, 0)) {
		t.Error("it is refreshed behind its end")
	}
	b.must(opening(3))
	p := asking(3)
	p.Session = state.Hash{3}
	b.must(p)
	b.must(redeeming(3))
	b.now += state.GrantIdleMillis
	b.must(command.TickPayload{})
	if len(b.view().GrantsOf("ann")) != 0 {
		t.Error("idle grants stay")
	}
}

// Whatever ends all sessions of an account ends its grants and codes. Ending one session does not.
// The trail tells each beginning and each end.
func TestGrantsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		payload command.Payload
		ends    bool
	}{
		"sign-out": {command.EndSessionsPayload{Account: ann.ID,
			Hash: state.Hash{1}}, false},
		"sign-out everywhere": {command.EndSessionsPayload{Account: ann.ID}, true},
		"another's":           {command.EndSessionsPayload{Account: ids.ID{9}}, false},
		"password": {command.SetPasswordPayload{Account: ann.ID, Was: "p1", Password: "p2",
			Keep: state.Hash{1}}, true},
		"disabled":        {command.DisableAccountPayload{Account: ann.ID}, true},
		"removed":         {command.RemoveAccountPayload{Account: ann.ID}, true},
		"end":             {command.EndGrantPayload{Customer: "ann", Grant: ids.ID{1}}, true},
		"end of a nobody": {command.EndGrantPayload{Customer: "ann", Grant: ids.ID{2}}, false},
		"end by another":  {command.EndGrantPayload{Customer: "a", Grant: ids.ID{1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := consents(t)
			before := len(b.trail())
			b.grant(1)
			trail := b.trail()[before:]
			if len(trail) != 2 || trail[0].Action != "consent" || trail[1].Customer != "ann" ||
				len(trail[1].Changes) != 1 || trail[1].Changes[0].Table != "grants" {
				t.Fatalf("the trail of the beginning is %+v", trail)
			}
			b.must(refreshing(1, 0))
			if len(b.trail()) != before+2 {
				t.Error("a refresh is told")
			}
			b.must(asking(5))
			b.must(c.payload)
			b.must(c.payload)
			if gone := b.view().Grant(ids.ID{1}) == nil; gone != c.ends {
				t.Errorf("gone: %v", gone)
			}
			_, one := c.payload.(command.EndGrantPayload)
			if gone := b.view().GrantCode(state.Hash{5}) == nil; gone != (c.ends && !one) {
				t.Errorf("the code is gone: %v", gone)
			}
			told := 0
			for _, e := range b.trail()[before+2:] {
				for _, change := range e.Changes {
					if change.Table == "grants" && change.After == "" {
						told++
					}
				}
			}
			if told == 1 != c.ends || told > 1 {
				t.Errorf("the end is told %d times", told)
			}
		})
	}
}

// The least recently used grant is removed to make room, and the oldest code.
func TestGrantsAreBounded(t *testing.T) {
	b := consents(t)
	for n := range byte(maxGrants) {
		b.now++
		b.grant(n + 1)
	}
	b.must(refreshing(1, 0))
	if len(b.view().Grants(ann.ID)) != maxGrants {
		t.Fatalf("there are %d", len(b.view().Grants(ann.ID)))
	}
	if len(b.view().GrantCodes(ann.ID)) != maxGrantCodes {
		t.Fatalf("there are %d codes", len(b.view().GrantCodes(ann.ID)))
	}
	b.now++
	b.grant(100)
	if len(b.view().Grants(ann.ID)) != maxGrants || b.view().Grant(ids.ID{1}) == nil ||
		b.view().Grant(ids.ID{2}) != nil || len(b.view().GrantCodes(ann.ID)) != maxGrantCodes ||
		b.view().GrantCode(state.Hash{1}) != nil {
		t.Error("others went than those that were the oldest")
	}
}

// Commands repeated later, under their ids, change nothing.
func TestRepeatedGrants(t *testing.T) {
	b := consents(t)
	apply := func(id byte, payload command.Payload) (made bool) {
		t.Helper()
		data, err := b.m.Encode(ids.ID{200, id}, b.now, payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.index++
		result := b.m.Apply(b.index, data)
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		grant, _ := result.Value.(state.Grant)
		return !grant.ID.IsZero()
	}
	b.must(asking(1))
	redeem, first, second := redeeming(1), refreshing(1, 0), refreshing(1, 1)
	apply(1, redeem)
	apply(2, first)
	apply(3, second)
	want := *b.view().Grant(ids.ID{1})
	if !apply(2, first) || !apply(1, redeem) || !apply(3, second) {
		t.Error("a repeat is answered otherwise")
	}
	if got := b.view().Grant(ids.ID{1}); got == nil || *got != want {
		t.Errorf("repeats change the grant: %+v", got)
	}
	apply(4, command.EndGrantPayload{Customer: "ann", Grant: ids.ID{1}})
	apply(1, redeem)
	apply(3, second)
	if b.view().Grant(ids.ID{1}) != nil {
		t.Error("a repeat brings the grant back")
	}
}

// Billable trials of a grant with the scope LLM_READ are counted like a key's.
func TestTrialsOfGrants(t *testing.T) {
	b := newTrials(t)
	read := func() *state.Grant { return b.view().Grant(ids.ID{7}) }
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.PutGrant(&state.Grant{ID: ids.ID{7}, Customer: customer, Scope: model.ScopeLLMRead})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	launch := func() (ids.ID, error) {
		p := b.trial(b.scraper, command.Trial{Source: model.SourceSample, Key: ids.ID{7},
			Group: b.group})
		return p.Job, b.do(p)
	}
	job, err := launch()
	if err != nil || read().Trials != 1 {
		t.Fatalf("%v, %d are counted", err, read().Trials)
	}
	b.end(job, false)
	if read().Trials != 0 {
		t.Errorf("one that delivered nothing is counted")
	}
	for range maxTrials {
		if job, err = launch(); err != nil {
			t.Fatal(err)
		}
		b.end(job, true)
	}
	if _, err = launch(); fault.CodeOf(err) != fault.TrialLimitReached {
		t.Errorf("one more: %v", err)
	}
	b.now += dayMillis
	if _, err = launch(); err != nil || read().Trials != 1 {
		t.Errorf("a day later: %v", err)
	}
}

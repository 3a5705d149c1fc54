package auth

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// counting counts the reads that go to the leader.
type counting struct {
	client.Client
	reads int
}

func (c *counting) Fresh(ctx context.Context) (*client.View, error) {
	c.reads++
	return c.Client.Fresh(ctx)
}

// A malformed credential causes no read from the leader, and an unknown key only one. A known key
// causes one each time, so that a revoked key is refused at once.
func TestInvalidCredentialsDoNotAskTheLeader(t *testing.T) {
	manual := clock.NewManual(now())
	source := ids.Random{Now: manual.Now}
	state := clienttest.New(t, manual)
	c := &counting{Client: state}
	issuer, err := OpenIssuer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Authenticator{Client: c, Issuer: issuer, Touches: NewTouches(c, manual, nil),
		Clock: manual, IDs: source}
	secret, stranger, id := NewSecret(), NewSecret(), source.New()
	state.Must(t, client.OpenCustomer{Customer: "alice", Entry: source.New()})
	state.Must(t, client.MintKey{ID: id, Customer: "alice", Prefix: secret.Prefix,
		Hash: secret.Hash, Name: "n", Scope: model.ScopeUser})
	ask := func(credential string, code fault.Code, reads int) {
		t.Helper()
		c.reads = 0
		_, _, err := a.Authenticate(t.Context(), "Bearer "+credential, "")
		if err == nil && code != "" || err != nil && fault.CodeOf(err) != code || c.reads != reads {
			t.Errorf("%s: %v after %d reads, want %q after %d", credential, err, c.reads, code,
				reads)
		}
	}
	ask("", fault.Unauthorized, 0)
	ask("no.token.at-all", fault.Unauthorized, 0)
	ask("svc_live_none", fault.Unauthorized, 0)
	ask(stranger.Text, fault.Unauthorized, 1)
	ask(stranger.Text, fault.Unauthorized, 0)
	manual.Advance(10 * time.Second)
	ask(stranger.Text, fault.Unauthorized, 1)
	ask(secret.Text, "", 1)
	ask(secret.Text, "", 1)
	state.Freeze(state.View()) // this node lags behind
	state.Must(t, client.RevokeKey{ID: id, Customer: "alice"})
	ask(secret.Text, fault.Unauthorized, 1)
	if !a.Known("Bearer "+secret.Text) || a.Known("Bearer "+stranger.Text) {
		t.Error("what is known is what this node has")
	}
}

// A block takes effect with the next request, even if this node lags behind. It covers every
// credential of the customer, but not the admins who act for it.
func TestBlockedCustomersAreRefused(t *testing.T) {
	manual := clock.NewManual(now())
	source := ids.Random{Now: manual.Now}
	state := clienttest.New(t, manual)
	issuer, err := OpenIssuer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Authenticator{Client: state, Issuer: issuer, Touches: NewTouches(state, manual, nil),
		Clock: manual, IDs: source}
	secret, id := NewSecret(), source.New()
	for _, ref := range []string{"alice", "root"} {
		state.Must(t, client.OpenCustomer{Customer: ref, Entry: source.New()})
	}
	state.Must(t, client.MintKey{ID: id, Customer: "alice", Prefix: secret.Prefix,
		Hash: secret.Hash, Name: "n", Scope: model.ScopeUser})
	token := func(subject string, admin bool) string {
		text, err := issuer.Mint(subject, admin, now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	let := func(credential, customer string, code fault.Code) *Principal {
		t.Helper()
		p, _, err := a.Authenticate(t.Context(), "Bearer "+credential, customer)
		if err == nil && code != "" || err != nil && fault.CodeOf(err) != code {
			t.Errorf("for %q: %v, want %q", customer, err, code)
		}
		return &p
	}
	holds := func(p *Principal, code fault.Code) {
		t.Helper()
		if err := a.Holds(p); err == nil && code != "" || err != nil && fault.CodeOf(err) != code {
			t.Errorf("held: %v, want %q", err, code)
		}
	}
	key, own := let(secret.Text, "", ""), let(token("alice", false), "", "")
	acting := let(token("root", true), "alice", "")
	block := client.BlockCustomer{Customer: "alice", By: "root"}
	state.Must(t, block)
	for p, code := range map[*Principal]fault.Code{key: fault.CustomerBlocked,
		own: fault.CustomerBlocked, acting: ""} {
		holds(p, code)
	}
	_, _, err = a.AuthenticateHere(t.Context(), "Bearer "+token("alice", true))
	if fault.CodeOf(err) != fault.CustomerBlocked {
		t.Errorf("without a leader: %v", err)
	}
	state.Must(t, client.UnblockCustomer{Customer: "alice"})
	for _, p := range []*Principal{key, own, acting} {
		holds(p, "")
	}
	state.Freeze(state.View()) // this node lags behind
	state.Must(t, block)
	let(secret.Text, "", fault.CustomerBlocked)
	let(token("alice", false), "", fault.CustomerBlocked)
	let(token("alice", true), "root", fault.CustomerBlocked)
	let(token("root", true), "alice", "")
	state.Must(t, client.UnblockCustomer{Customer: "alice"})
	let(secret.Text, "", "")
	manual.Advance(time.Hour + leeway)
	holds(own, "")
	manual.Advance(time.Millisecond)
	holds(own, fault.Unauthorized)
	holds(acting, fault.Unauthorized)
	holds(key, "")
}

// What a session has opened stays open while the session exists. It ends with the session, or when
// its customer is blocked.
func TestSessionsHold(t *testing.T) {
	manual := clock.NewManual(now())
	source := ids.Random{Now: manual.Now}
	state := clienttest.New(t, manual)
	a := &Authenticator{Client: state, Touches: NewTouches(state, manual, nil), Clock: manual,
		IDs: source}
	account := client.CreateAccount{ID: source.New(), Email: "a@shop.example", Customer: "alice",
		Password: "hash", Entry: source.New()}
	state.Must(t, account)
	secret := NewSessionSecret()
	state.Must(t, client.OpenSession{Account: account.ID, Password: account.Password,
		Hash: HashSession(secret)})
	p, _, err := a.Authenticate(t.Context(), "Bearer "+secret, "")
	if err != nil || p.Session == nil {
		t.Fatalf("%+v: %v", p, err)
	}
	holds := func(when string, code fault.Code) {
		t.Helper()
		if err := a.Holds(&p); err == nil && code != "" || err != nil && fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", when, err, code)
		}
	}
	holds("at once", "")
	manual.Advance(time.Hour)
	holds("an hour later", "")
	state.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
	holds("blocked", fault.CustomerBlocked)
	state.Must(t, client.UnblockCustomer{Customer: "alice"})
	holds("unblocked", "")
	state.Must(t, client.EndSessions{Account: account.ID})
	holds("signed out", fault.Unauthorized)
}

// A key is valid until the millisecond in which it expires, by this server's clock. It is not
// removed.
func TestKeysExpire(t *testing.T) {
	manual := clock.NewManual(now())
	source := ids.Random{Now: manual.Now}
	state := clienttest.New(t, manual)
	a := &Authenticator{Client: state, Touches: NewTouches(state, manual, nil), Clock: manual,
		IDs: source}
	secret := NewSecret()
	state.Must(t, client.OpenCustomer{Customer: "alice", Entry: source.New()})
	made := state.Must(t, client.MintKey{ID: source.New(), Customer: "alice",
		Prefix: secret.Prefix, Hash: secret.Hash, Name: "n", Scope: model.ScopeUser,
		ExpiresAt: now().Add(time.Minute).UnixMilli()}).(client.Key)
	manual.Advance(time.Minute - time.Millisecond)
	p, _, err := a.Authenticate(t.Context(), "Bearer "+secret.Text, "")
	if err != nil {
		t.Fatalf("a millisecond before: %v", err)
	}
	a.Used(&p, netip.MustParseAddr("192.0.2.1"))
	if err := a.Holds(&p); err != nil {
		t.Errorf("what it opened: %v", err)
	}
	used := a.Touches.LastUse(&made)
	manual.Advance(time.Millisecond)
	for range 2 {
		_, _, err := a.Authenticate(t.Context(), "Bearer "+secret.Text, "")
		if fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("from then on: %v", err)
		}
	}
	if err := a.Holds(&p); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("what it had opened: %v", err)
	}
	if a.Touches.LastUse(&made) != used || used.Address != "192.0.2.1" {
		t.Errorf("a refused call is a use: %+v", a.Touches.LastUse(&made))
	}
	if state.View().Key(made.ID) == nil {
		t.Error("an expired key is gone")
	}
}

// Whatever the token of an issuer's person has opened ends when the account is disabled. That holds
// if it acts for another customer, too.
func TestDisabledAccountsHoldNothing(t *testing.T) {
	manual := clock.NewManual(now())
	state := clienttest.New(t, manual)
	a := &Authenticator{Client: state, Clock: manual}
	account := AccountOf("https://id.test", "carla")
	state.Must(t, client.CreateAccount{ID: account, Customer: "carla", Email: "c@x.test"})
	held := Principal{Customer: "alice", Subject: "carla", Admin: true, Foreign: true,
		Account: account, Until: now().Add(time.Hour).UnixMilli()}
	other := held
	other.Account = AccountOf("https://other.test", "carla")
	state.Must(t, client.DisableAccount{Account: account})
	if err := a.Holds(&held); fault.CodeOf(err) != fault.AccountDisabled {
		t.Errorf("of a disabled account: %v", err)
	}
	if err := a.Holds(&other); err != nil {
		t.Errorf("of another issuer's person: %v", err)
	}
}

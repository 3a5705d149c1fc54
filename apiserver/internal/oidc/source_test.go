package oidc

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// An issuer rotates its keys under load. No good token is refused, and each new key costs one
// fetch, however many calls wait for it.
func TestKeysRotateUnderLoad(t *testing.T) {
	const rotations, callers = 9, 8
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	run(t, issuer)
	var token atomic.Pointer[string]
	sign := func() {
		text := at.Token(t, "alice", manual.Now())
		token.Store(&text)
	}
	sign()
	if _, err := issuer.Check(t.Context(), *token.Load()); err != nil {
		t.Fatal(err)
	}
	var checked atomic.Int64
	var wait sync.WaitGroup
	ended, end := context.WithCancel(t.Context())
	for range callers {
		wait.Go(func() {
			for ended.Err() == nil {
				if _, err := issuer.Check(t.Context(), *token.Load()); err != nil {
					t.Errorf("a good token is refused: %v", err)
					return
				}
				checked.Add(1)
			}
		})
	}
	for n := range rotations {
		manual.Advance(askEvery)
		at.Rotate(t, algorithms[n%len(algorithms)])
		sign()
		for before := checked.Load(); checked.Load() < before+10*callers && !t.Failed(); {
			runtime.Gosched()
		}
	}
	end()
	wait.Wait()
	// the first fetch may have begun before the first token came
	if got := at.Fetches(); got < rotations || got > rotations+2 {
		t.Errorf("%d fetches for %d rotations", got, rotations)
	}
}

// Tokens of made-up keys trigger one fetch in ten seconds, and do not affect tokens of known keys.
func TestMadeUpKeysAreThrottled(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	run(t, issuer)
	good := at.Token(t, "alice", manual.Now())
	if _, err := issuer.Check(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	before := at.Fetches()
	private := oidctest.NewKey(t, jose.EdDSA)
	madeUp := func(n int) string {
		return oidctest.SignWith(t, jose.JSONWebKey{Key: private, KeyID: fmt.Sprint(n),
			Algorithm: string(jose.EdDSA)}, at.Claims("root", manual.Now()), nil)
	}
	for round := range 3 {
		var wait sync.WaitGroup
		for n := range 200 {
			wait.Go(func() {
				if _, err := issuer.Check(t.Context(), madeUp(n)); fault.CodeOf(err) !=
					fault.Unauthorized {
					t.Errorf("a made-up key: %v", err)
				}
				if _, err := issuer.Check(t.Context(), good); err != nil {
					t.Errorf("beside it: %v", err)
				}
			})
		}
		wait.Wait()
		if got := at.Fetches() - before; got > round+1 {
			t.Errorf("%d fetches in round %d", got, round)
		}
		manual.Advance(askEvery)
	}
}

// A withdrawn key is valid until the next fetch of the keys.
func TestWithdrawnKeysEnd(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	old := at.Token(t, "alice", manual.Now())
	at.Rotate(t, jose.EdDSA)
	check := func(token string, code fault.Code) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // wait for nothing, since run is not running
		if _, err := issuer.Check(ctx, token); fault.CodeOf(err) != code {
			t.Errorf("%v, want %q", err, code)
		}
	}
	fetch := func() {
		t.Helper()
		if err := issuer.keys.attempt(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fetch()
	check(old, "")
	check(at.Token(t, "alice", manual.Now()), "")
	at.Withdraw()
	check(old, "")
	fetch()
	check(at.Token(t, "alice", manual.Now()), "")
	check(old, fault.Unavailable) // a newer set might have its key
	fetch()
	check(old, fault.Unauthorized) // but it has not
}

// Without an issuer there are no keys, and every token is refused as unavailable. Once the issuer
// is there, its keys are fetched without a call.
func TestIssuerComesLater(t *testing.T) {
	at := oidctest.Start(t)
	at.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})
	issuer, manual := newIssuer(t, at)
	run(t, issuer)
	if _, err := issuer.Check(t.Context(), at.Token(t, "alice", manual.Now())); fault.CodeOf(err) !=
		fault.Unavailable {
		t.Errorf("without keys: %v", err)
	}
	if state := issuer.State(); state.Reachable || state.Keys != 0 || state.Failed == 0 {
		t.Errorf("away: %+v", state)
	}
	at.Answer(nil)
	for !issuer.State().Reachable {
		manual.Advance(time.Second)
		runtime.Gosched()
	}
	if _, err := issuer.Check(t.Context(), at.Token(t, "alice", manual.Now())); err != nil {
		t.Error(err)
	}
	if state := issuer.State(); state.Keys != 1 || state.Fetched == 0 {
		t.Errorf("there: %+v", state)
	}
}

// While an issuer is away, its keys are valid for an hour.
func TestKeysHoldForAnHour(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // wait for no key, since run is not running
	check := func(code fault.Code) {
		t.Helper()
		if _, err := issuer.Check(ended, at.Token(t, "alice", manual.Now())); fault.CodeOf(err) !=
			code {
			t.Errorf("%v, want %q", err, code)
		}
	}
	if err := issuer.keys.attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	if err := issuer.keys.attempt(t.Context()); err == nil {
		t.Fatal("an empty document will do")
	}
	manual.Advance(keysFor)
	check("")
	if state := issuer.State(); state.Reachable || state.Keys != 1 || state.Age != keysFor {
		t.Errorf("%+v", state)
	}
	manual.Advance(time.Second)
	check(fault.Unavailable)
	if state := issuer.State(); state.Keys != 0 {
		t.Errorf("%+v", state)
	}
	at.Answer(nil)
	if err := issuer.keys.attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("")
}

// Whatever an issuer answers is bounded, and is refused with a reason.
func TestHostileIssuers(t *testing.T) {
	at := oidctest.Start(t)
	issuer, _ := newIssuer(t, at)
	says := func(document string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(document)) }
	}
	discovery := func(issuer, keys string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer, keys)
				return
			}
			_, _ = w.Write([]byte(`{"keys":[]}`))
		}
	}
	keys := func(document string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keys" {
				_, _ = w.Write([]byte(document))
				return
			}
			discovery(at.URL, at.URL+"/keys")(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			block := []byte(strings.Repeat(" ", 64<<10))
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "larger than"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000000000")
		}, "are allowed"},
		"round in circles": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "status 302"},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}, "status 500"},
		"a page":              {says("<html>"), "discovery"},
		"nested":              {says(strings.Repeat("[", 200_000)), "discovery"},
		"another issuer":      {discovery(at.URL+"/", at.URL+"/keys"), "of the issuer"},
		"nowhere":             {discovery(at.URL, ""), "jwks_uri"},
		"keys by http":        {discovery(at.URL, "http://keys.example/"), "https"},
		"keys in a file":      {discovery(at.URL, "file:///etc/passwd"), "https"},
		"keys with a user":    {discovery(at.URL, "https://u:p@keys.example/"), "user"},
		"keys of the cloud":   {discovery(at.URL, "https://169.254.169.254/"), "not be reached"},
		"keys in the network": {discovery(at.URL, "https://10.0.0.1/"), "not be reached"},
		"no keys":             {keys(`{"keys":[]}`), "no key"},
		"none of ours":        {keys(`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"new"},7]}`), "no key"},
		"many keys":           {keys(`{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`), "65 keys"},
		"a list":              {keys(`[]`), "key set"},
	} {
		at.Answer(c.answer)
		_, err := issuer.keys.fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q in it", name, err, c.why)
		}
	}
	at.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := issuer.keys.fetch(ended); fault.CodeOf(err) != fault.PageTimeout {
		t.Errorf("an issuer that says nothing: %v", err)
	}
}

// An issuer on this machine may be called localhost, without a resolver.
func TestIssuerIsLocalhost(t *testing.T) {
	at := oidctest.Start(t)
	at.URL = strings.Replace(at.URL, "127.0.0.1", "localhost", 1)
	issuer, _ := newIssuer(t, at)
	if _, err := issuer.keys.fetch(t.Context()); err != nil {
		t.Error(err)
	}
}

// An issuer at a private address is only contacted if the operator allows it.
func TestPrivateIssuersAreGuarded(t *testing.T) {
	at := oidctest.Start(t)
	issuer, _ := newIssuer(t, at)
	guarded, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	issuer.config.Egress = guarded
	if _, err := newSource(&issuer.config).fetch(t.Context()); fault.CodeOf(err) !=
		fault.PageAddressForbidden {
		t.Errorf("%v", err)
	}
	if at.Fetches() != 0 {
		t.Error("it was asked all the same")
	}
}

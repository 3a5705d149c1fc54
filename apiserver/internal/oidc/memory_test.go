package oidc

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// A token is verified once, but checked against time and use at each call. Another token with its
// claims is refused. Newly fetched keys remember no tokens.
func TestVerifiedTokensAreRemembered(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	run(t, issuer)
	token := at.Token(t, "alice", manual.Now())
	check := func(token string, want fault.Code) {
		t.Helper()
		got, err := issuer.Check(t.Context(), token)
		if fault.CodeOf(err) != want || err == nil && got.Subject != "alice" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	check(token, "")
	keys := issuer.keys.current()
	keys.keys = nil // so that nothing can be verified now
	check(token, "")
	check(token[:len(token)-6]+"AAAAAA", fault.Unauthorized)
	for _, other := range []wanted{{audiences: []string{"another"}},
		{audiences: issuer.config.Audiences, client: "web", nonce: "n"}} {
		if _, err := issuer.check(t.Context(), token, other); fault.CodeOf(err) !=
			fault.Unauthorized {
			t.Errorf("%+v: %v", other, err)
		}
	}
	awaitKeys(issuer, manual, keys)
	if n := len(issuer.keys.current().verified.said); n != 0 {
		t.Errorf("new keys remember %d tokens", n)
	}
	check(token, "")
	manual.Advance(24 * time.Hour)
	check(token, fault.Unauthorized)
}

// A token verified at a sign-in is not valid for a call, though it is remembered. The tokens of a
// withdrawn key are forgotten with it.
func TestRememberedTokensAreForTheirUse(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at)
	run(t, issuer)
	claims := at.Claims("alice", manual.Now())
	claims["aud"], claims["nonce"] = "web", "n"
	token, call := at.Sign(t, claims, nil), at.Token(t, "alice", manual.Now())
	wantsCode := func(what, token string, want wanted, code fault.Code) {
		t.Helper()
		if _, err := issuer.check(t.Context(), token, want); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
	}
	signIn := wanted{audiences: []string{"web"}, client: "web", nonce: "n"}
	calls := wanted{audiences: issuer.config.Audiences}
	wantsCode("a sign-in", token, signIn, "")
	wantsCode("a call with its token", token, calls, fault.Unauthorized)
	signIn.nonce = "m"
	wantsCode("another sign-in", token, signIn, fault.Unauthorized)
	wantsCode("a call", call, calls, "")
	keys := issuer.keys.current()
	if n := len(keys.verified.said); n != 2 {
		t.Fatalf("%d tokens are remembered", n)
	}
	at.Rotate(t, jose.ES256)
	at.Withdraw()
	awaitKeys(issuer, manual, keys)
	manual.Advance(-fetchEvery)
	wantsCode("a key that was taken back", call, calls, fault.Unauthorized)
}

// awaitKeys moves the clock to the next fetch, and returns once there are other keys than these.
func awaitKeys(issuer *Issuer, manual *clock.Manual, than *keySet) {
	// The issuer sets its timer only after it has shown the keys.
	for issuer.keys.current() == than && manual.Waiting(manual.Now().Add(fetchEvery)) == 0 {
		runtime.Gosched()
	}
	manual.Advance(fetchEvery)
	for issuer.keys.current() == than {
		runtime.Gosched()
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	for n := range uint64(2*maxVerified + 1) {
		var hash [sha256.Size]byte
		binary.BigEndian.PutUint64(hash[:], n)
		m.keep(hash, claims{}, 1_000)
		if _, known := m.recall(hash); !known || len(m.said) > maxVerified {
			t.Fatalf("%d are remembered after %d, the last one: %t", len(m.said), n+1, known)
		}
	}
}

// Fewer large tokens are kept. A token that several calls verify at once counts once.
func TestMemoryIsBoundedInBytes(t *testing.T) {
	var m memory
	for n := range uint64(2*maxVerifiedBytes/maxToken + 1) {
		var hash [sha256.Size]byte
		binary.BigEndian.PutUint64(hash[:], n)
		m.keep(hash, claims{}, maxToken)
		m.keep(hash, claims{}, maxToken)
		if _, known := m.recall(hash); !known || m.bytes != len(m.said)*maxToken ||
			m.bytes > maxVerifiedBytes {
			t.Fatalf("%d are remembered of %d bytes, the last one: %t", len(m.said), m.bytes, known)
		}
	}
	if len(m.said) != 1 {
		t.Errorf("%d are remembered after the bound was met twice", len(m.said))
	}
}

func BenchmarkCheck(b *testing.B) {
	at := oidctest.Start(b)
	issuer, manual := newIssuer(b, at)
	run(b, issuer)
	token := at.Token(b, "alice", manual.Now())
	check := func() {
		if _, err := issuer.Check(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			check()
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			issuer.keys.current().verified.said = nil
			check()
		}
	})
}

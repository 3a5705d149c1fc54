package oidc

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/pkg/fault"
)

// A token is verified once, and held against the time and its use at each call. Another one with
// the same claims is refused. Keys that are fetched anew remember none.
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
	keys.keys = nil // so that nothing can be verified any more
	check(token, "")
	check(token[:len(token)-6]+"AAAAAA", fault.Unauthorized)
	for _, other := range []wanted{{audiences: []string{"another"}},
		{audiences: issuer.config.Audiences, client: "web", nonce: "n"}} {
		if _, err := issuer.check(t.Context(), token, other); fault.CodeOf(err) !=
			fault.Unauthorized {
			t.Errorf("%+v: %v", other, err)
		}
	}
	manual.Advance(fetchEvery)
	for issuer.keys.current() == keys {
		runtime.Gosched()
	}
	if n := len(issuer.keys.current().verified.said); n != 0 {
		t.Errorf("new keys remember %d tokens", n)
	}
	check(token, "")
	manual.Advance(24 * time.Hour)
	check(token, fault.Unauthorized)
}

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	for n := range uint64(2*maxVerified + 1) {
		var hash [sha256.Size]byte
		binary.BigEndian.PutUint64(hash[:], n)
		m.keep(hash, claims{})
		if _, known := m.recall(hash); !known || len(m.said) > maxVerified {
			t.Fatalf("%d are remembered after %d, the last one: %t", len(m.said), n+1, known)
		}
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

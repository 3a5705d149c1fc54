package auth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func now() time.Time { return time.Unix(1_800_000_000, 0) }

func TestIssuerKeepsItsKey(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenIssuer(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file %v %v", info, err)
	}
	token, err := first.Mint("alice", true, now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenIssuer(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := second.check(token, now())
	if err != nil || got != (identity{subject: "alice", admin: true,
		until: now().Add(time.Hour + leeway).UnixMilli()}) {
		t.Errorf("%v %v", got, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIssuer(dir); err == nil {
		t.Error("a broken key file is accepted")
	}
}

func TestIssuerRefuses(t *testing.T) {
	issuer, err := OpenIssuer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(change func(*tokenClaims)) string {
		claims := tokenClaims{Claims: jwt.Claims{Issuer: issuerName,
			Audience: jwt.Audience{issuerName}, Subject: "alice",
			Expiry: jwt.NewNumericDate(now())}}
		change(&claims)
		text, err := jwt.Signed(issuer.signer).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: foreign}, nil)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := jwt.Signed(stranger).Claims(jwt.Claims{Issuer: issuerName,
		Audience: jwt.Audience{issuerName}, Subject: "alice",
		Expiry: jwt.NewNumericDate(now())}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	good := sign(func(*tokenClaims) {})
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	if _, err := issuer.check(good, now().Add(59*time.Second)); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
	issued := sign(func(c *tokenClaims) {
		c.IssuedAt = jwt.NewNumericDate(now().Add(10 * time.Minute))
	})
	if _, err := issuer.check(issued, now()); err != nil {
		t.Errorf("by a server whose clock is behind: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "nonsense": "a.b.c", "another key": forged, "no algorithm": none,
		"cut":            good[:len(good)-4],
		"no expiry":      sign(func(c *tokenClaims) { c.Expiry = nil }),
		"no subject":     sign(func(c *tokenClaims) { c.Subject = "" }),
		"long subject":   sign(func(c *tokenClaims) { c.Subject = strings.Repeat("x", 129) }),
		"another issuer": sign(func(c *tokenClaims) { c.Issuer = "x" }),
		"another public": sign(func(c *tokenClaims) { c.Audience = jwt.Audience{"x"} }),
		"not yet valid": sign(func(c *tokenClaims) {
			c.NotBefore = jwt.NewNumericDate(now().Add(2 * time.Minute))
		}),
		"expired": sign(func(c *tokenClaims) {
			c.Expiry = jwt.NewNumericDate(now().Add(-2 * time.Minute))
		}),
	} {
		if _, err := issuer.check(text, now()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := issuer.Mint(strings.Repeat("x", 129), false, now(), time.Hour); err == nil {
		t.Error("a long subject gets a token")
	}
}

func TestAccess(t *testing.T) {
	key := func(scope model.Scope) *Principal {
		return &Principal{Customer: "a",
			Key: &client.Key{Scope: scope}}
	}
	user, full, read := key(model.ScopeUser), key(model.ScopeLLMFull), key(model.ScopeLLMRead)
	signIn := &Principal{Customer: "a", Subject: "a"}
	admin := &Principal{Customer: "a", Subject: "a", Admin: true}
	acting := &Principal{Customer: "b", Subject: "a", Admin: true}
	all := []*Principal{user, full, read, signIn, admin, acting}
	for access, allowed := range map[Access][]*Principal{
		Read:       all,
		Write:      {user, full, signIn, admin, acting},
		Mint:       {user, signIn, admin, acting},
		Restricted: {full},
		Agent:      {full, read},
		SignInOnly: {signIn, admin},
		Admin:      {admin, acting},
	} {
		for i, p := range all {
			want := false
			for _, a := range allowed {
				want = want || a == p
			}
			err := access.Check(p)
			if (err == nil) != want {
				t.Errorf("%s, caller %d: %v", access, i, err)
			}
			if err != nil && (strings.Contains(err.Error(), "  ") ||
				p.Key == nil && strings.Contains(err.Error(), "a key of scope")) {
				t.Errorf("%s, caller %d: %v", access, i, err)
			}
		}
	}
}

// Last uses and their addresses reach the control plane after a minute, and at the end.
func TestTouches(t *testing.T) {
	c := clock.NewManual(now())
	fake := clienttest.New(t, c)
	fake.Must(t, client.OpenCustomer{Customer: "a", Entry: ids.ID{1}})
	key := fake.Must(t, client.MintKey{ID: ids.ID{2}, Customer: "a",
		Prefix: "abcdefg"}).(client.Key)
	touches := NewTouches(fake, c, slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil)))
	stored := func() Use {
		k := fake.View().Key(key.ID)
		return Use{At: k.LastUsedAt, Address: k.LastAddress}
	}
	last := func() Use { return touches.LastUse(fake.View().Key(key.ID)) }
	flush := func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		touches.Run(ctx)
	}
	expect := func(when string, got, want Use) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	expect("before the first use", last(), Use{})
	touches.touch(key.ID, netip.MustParseAddr("192.0.2.7"))
	touches.touch(key.ID, netip.MustParseAddr("::ffff:192.0.2.1"))
	first := Use{At: now().UnixMilli(), Address: "192.0.2.1"}
	expect("last used", last(), first)
	expect("stored", stored(), Use{})
	flush()
	expect("stored at the end", stored(), first)
	c.Advance(time.Hour)
	expect("an hour later", last(), first)
	touches.touch(key.ID, netip.MustParseAddr("fe80::1%eth0"))
	second := Use{At: now().Add(time.Hour).UnixMilli(), Address: "fe80::1"}
	expect("used again", last(), second)
	flush()
	expect("stored", stored(), second)
	fake.Must(t, client.TouchKeys{Keys: []client.KeyTouch{{ID: key.ID, At: first.At,
		Address: "192.0.2.9"}}})
	expect("another server tells of an older use", stored(), second)
	c.Advance(time.Minute)
	touches.touch(key.ID, netip.Addr{})
	flush()
	expect("from nobody knows where", stored(), Use{At: second.At + 60_000})
}

// New keys have secrets of 256 bits or more. Older keys of any length remain valid.
func TestSecrets(t *testing.T) {
	fake := clienttest.New(t, clock.NewManual(now()))
	fake.Must(t, client.OpenCustomer{Customer: "a", Entry: ids.ID{1}})
	made := NewSecret()
	if _, part, _ := strings.Cut(made.Text, "."); 5*len(part) < 256 || len(made.Text) > 128 {
		t.Errorf("a new key is %q", made.Text)
	}
	longest := "svc_live_prefix4." + strings.Repeat("x", maxKeyLength-17)
	for i, text := range []string{made.Text, "svc_live_prefix1." + rand.Text(),
		"svc_live_prefix2.x", "svc_live_prefix3.", longest} {
		fake.Must(t, client.MintKey{ID: ids.ID{2, byte(i)}, Customer: "a", Prefix: text[9:16],
			Hash: sha256.Sum256([]byte(text))})
		if findKey(fake.View(), text) == nil || findKey(fake.View(), text+"x") != nil {
			t.Errorf("%q is not the key", text)
		}
	}
}

func FuzzFindKey(f *testing.F) {
	c := clock.NewManual(now())
	fake := clienttest.New(f, c)
	fake.Must(f, client.OpenCustomer{Customer: "a", Entry: ids.ID{1}})
	secret := NewSecret()
	fake.Must(f, client.MintKey{ID: ids.ID{2}, Customer: "a", Prefix: secret.Prefix,
		Hash: secret.Hash})
	view := fake.View()
	f.Add(secret.Text)
	f.Add("svc_live_.")
	f.Add("svc_live_" + secret.Prefix + ".")
	f.Fuzz(func(t *testing.T, text string) {
		if found := findKey(view, text); (found != nil) != (text == secret.Text) {
			t.Errorf("%q: %v", text, found)
		}
	})
}

// The servers of a cluster share one key, each in its own directory.
func TestPlaceKey(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	dirs := []string{t.TempDir(), t.TempDir()}
	before, err := OpenIssuer(dirs[1]) // the server had its own key
	if err != nil {
		t.Fatal(err)
	}
	var issuers []*Issuer
	for _, dir := range dirs {
		if err := PlaceKey(dir, private); err != nil {
			t.Fatal(err)
		}
		issuer, err := OpenIssuer(dir)
		if err != nil {
			t.Fatal(err)
		}
		issuers = append(issuers, issuer)
	}
	token, err := issuers[0].Mint("acme", true, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := issuers[1].check(token, now); err != nil ||
		got != (identity{subject: "acme", admin: true,
			until: now.Add(time.Hour + leeway).UnixMilli()}) {
		t.Errorf("the other server reads %+v, %v", got, err)
	}
	if _, err := before.check(token, now); err == nil {
		t.Error("a token of the cluster passes with the key that the directory had before")
	}
}

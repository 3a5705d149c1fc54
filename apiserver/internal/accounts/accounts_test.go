package accounts

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const (
	email    = "ann@x.test"
	password = "correct horse battery"
)

type rig struct {
	*Service
	t      *testing.T
	clock  *clock.Manual
	state  *clienttest.Client
	mu     sync.Mutex
	counts map[Outcome]int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(time.Unix(1_800_000_000, 0)),
		counts: map[Outcome]int{}}
	r.state = clienttest.New(t, r.clock)
	r.Service = New(Config{HashKiB: 64, Client: r.state, Limiter: cache.NewLocal(r.clock),
		Clock: r.clock, IDs: ids.Random{Now: r.clock.Now}, DeviceKey: []byte("key"),
		Logger: slog.New(slog.DiscardHandler), Count: func(o Outcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.counts[o]++
		}})
	if _, err := r.Create(t.Context(), NewAccount{Email: email, Password: password,
		Customer: "ann"}); err != nil {
		t.Fatal(err)
	}
	return r
}

// try signs in from a network address.
func (r *rig) try(address, email, password, device string) (Opened, fault.Code) {
	r.t.Helper()
	opened, _, err := r.SignIn(r.t.Context(), Attempt{Email: email, Password: password,
		Address: netip.MustParseAddr(address), Device: device})
	if err != nil {
		return opened, fault.CodeOf(err)
	}
	return opened, ""
}

// Strangers share a hundred guesses an hour at an account, from however many addresses. A device
// that has signed in before has its own limit.
func TestStrangersTogether(t *testing.T) {
	r := newRig(t)
	opened, code := r.try("192.0.2.1", strings.ToUpper(email), password, "")
	if code != "" {
		t.Fatal(code)
	}
	for i := 1; i < guessesOfStrangers.Count; i++ {
		if _, code := r.try(fmt.Sprintf("198.51.100.%d", i), email, "wrong",
			"forged"); code != fault.Unauthorized {
			t.Fatalf("guess %d: %s", i, code)
		}
	}
	if _, code := r.try("203.0.113.1", email, password, ""); code != fault.RateLimited {
		t.Errorf("one more stranger: %q", code)
	}
	if again, code := r.try("203.0.113.1", email, password, opened.Device); code != "" ||
		again.Device != opened.Device {
		t.Errorf("a known device: %q", code)
	}
	for range guessesHere.Count - 1 {
		r.try("203.0.113.1", email, "wrong", opened.Device)
	}
	if _, code := r.try("203.0.113.1", email, password, opened.Device); code != fault.RateLimited {
		t.Errorf("a known device that guesses: %q", code)
	}
	other, err := r.Create(t.Context(), NewAccount{Email: "bob@x.test", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := r.knows(opened.Device, other.ID); known {
		t.Error("a device of one account is one of another")
	}
	if r.counts[SignedIn] != 2 || r.counts[TooOften] != 2 {
		t.Errorf("counted %v", r.counts)
	}
}

// A network's guesses are limited over all accounts, including those that do not exist.
func TestANetworkGuessesAtMany(t *testing.T) {
	r := newRig(t)
	for i := range guessesOfAddress.Count {
		if _, code := r.try(fmt.Sprintf("2001:db8::%x", i+1), fmt.Sprintf("%d@x.test", i), "wrong",
			""); code != fault.Unauthorized {
			t.Fatalf("guess %d: %s", i, code)
		}
	}
	if _, code := r.try("2001:db8::ffff", email, password, ""); code != fault.RateLimited {
		t.Errorf("one more: %q", code)
	}
	if _, code := r.try("2001:db8:0:1::1", email, password, ""); code != "" {
		t.Errorf("another network: %q", code)
	}
}

// failures returns what the audit trail tells of failed sign-ins, once their minute has passed.
func (r *rig) failures() (told []string) {
	r.clock.Advance(2 * time.Minute)
	r.state.Tick(r.t)
	r.state.View().EachAudit(func(e *client.AuditEntry) bool {
		if e.Count > 0 {
			told = append(told, fmt.Sprint(e.Actor.Address, " ", e.Count))
		}
		return true
	})
	return told
}

// Input that is too long is wrong, and is not hashed. It costs a flood nothing, so nothing is
// recorded of it.
func TestLongInput(t *testing.T) {
	r := newRig(t)
	if _, code := r.try("192.0.2.1", strings.Repeat("a", 255), password, ""); code !=
		fault.Unauthorized {
		t.Errorf("a long address: %q", code)
	}
	if _, code := r.try("192.0.2.1", email, strings.Repeat("a", maxPassword+1), ""); code !=
		fault.Unauthorized {
		t.Errorf("a long password: %q", code)
	}
	if told := r.failures(); len(told) > 0 {
		t.Errorf("told are %q", told)
	}
}

// A network's failures are counted together, like its guesses.
func TestFailuresAreOfANetwork(t *testing.T) {
	r := newRig(t)
	r.try("2001:db8::1", email, "wrong", "")
	r.try("2001:db8::2", email, "wrong", "")
	told := r.failures()
	if len(told) != 1 || told[0] != "2001:db8::/64 2" {
		t.Errorf("told are %q", told)
	}
}

func TestHashes(t *testing.T) {
	h := newHasher(64)
	hash, err := h.make(t.Context(), password)
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=3,p=1$") {
		t.Fatalf("%s %v", hash, err)
	}
	if again, _ := h.make(t.Context(), password); again == hash {
		t.Error("two hashes have one salt")
	}
	decoy := h.decoy()
	if right, err := h.matches(t.Context(), ofKnown, decoy, password); right || err != nil ||
		len(decoy) != len(hash) || h.decoy() == decoy {
		t.Errorf("%s is no decoy of %s: %v %v", decoy, hash, right, err)
	}
	// made with another cost by the reference's command line
	known := "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$"
	for text, right := range map[string]bool{password: true, "wrong": false, "": false} {
		if got, err := h.matches(t.Context(), ofKnown, hash, text); got != right || err != nil {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "x", known, strings.Replace(hash, "argon2id", "argon2i", 1),
		strings.Replace(hash, "v=19", "v=16", 1), strings.Replace(hash, "t=3", "t=0", 1),
		strings.Replace(hash, "p=1$", "p=1$!", 1), hash + "!"} {
		if right, err := h.matches(t.Context(), ofKnown, bad, password); err == nil || right {
			t.Errorf("%s is a hash", bad)
		}
	}
}

// The queue of waiting hashes is bounded.
func TestHashesAreBounded(t *testing.T) {
	h := newHasher(64)
	places := h.takePlaces()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			_, err := h.make(ctx, password)
			failed <- err
		}()
	}
	h.awaitWaiting(t, ofKnown, maxWaiting)
	if _, err := h.make(ctx, password); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range maxWaiting {
		if err := <-failed; fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("given up: %v", err)
		}
	}
	for range places {
		h.leave()
	}
	if _, err := h.make(t.Context(), password); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if h.places != places {
		t.Errorf("%d places are left of %d", h.places, places)
	}
}

// takePlaces takes all places and returns how many there are.
func (h *hasher) takePlaces() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	places := h.places
	h.places = 0
	return places
}

// awaitWaiting waits until so many wait in a queue.
func (h *hasher) awaitWaiting(t *testing.T, queue, want int) {
	t.Helper()
	for {
		h.mu.Lock()
		waiting := len(h.queues[queue])
		h.mu.Unlock()
		if waiting == want {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d wait, want %d", waiting, want)
		}
		runtime.Gosched()
	}
}

// TestKnownDevicesPassAFlood: while guesses from many networks fill the queue, a known device gets
// in, before those that wait. Others learn which ways there are.
func TestKnownDevicesPassAFlood(t *testing.T) {
	r := newRig(t)
	opened, code := r.try("192.0.2.1", email, password, "")
	if code != "" {
		t.Fatal(code)
	}
	places, flood := r.hashes.takePlaces(), make(chan fault.Code, maxWaiting)
	for n := range maxWaiting {
		go func() {
			_, code := r.try(fmt.Sprintf("2001:db8:0:%x::1", n), fmt.Sprint(n, "@x.test"), "wrong",
				"")
			flood <- code
		}()
	}
	r.hashes.awaitWaiting(t, ofStrangers, maxWaiting)
	_, _, err := r.SignIn(t.Context(), Attempt{Email: email, Password: password,
		Address: netip.MustParseAddr("192.0.2.1")})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "passkey") ||
		!strings.Contains(err.Error(), "link") {
		t.Errorf("an unknown browser: %v", err)
	}
	known := make(chan fault.Code)
	go func() {
		_, code := r.try("192.0.2.1", email, password, opened.Device)
		known <- code
	}()
	r.hashes.awaitWaiting(t, ofKnown, 1)
	r.hashes.mu.Lock()
	r.hashes.pass()
	if n := len(r.hashes.queues[ofStrangers]); n != maxWaiting {
		t.Errorf("%d guesses wait for the next place", n)
	}
	r.hashes.mu.Unlock()
	if code := <-known; code != "" {
		t.Errorf("the known device: %q", code)
	}
	for range places - 1 {
		r.hashes.leave()
	}
	for range maxWaiting {
		if code := <-flood; code != fault.Unauthorized {
			t.Errorf("a guess that waited: %q", code)
		}
	}
}

// TestASiteGuessesAtMany: the networks of an IPv6 /48 share a limit. It is not for known devices.
func TestASiteGuessesAtMany(t *testing.T) {
	r := newRig(t)
	opened, code := r.try("2001:db9::1", email, password, "")
	if code != "" {
		t.Fatal(code)
	}
	for n := range guessesOfSite.Count {
		if _, code := r.try(fmt.Sprintf("2001:db8:0:%x::1", n), fmt.Sprint(n, "@x.test"), "wrong",
			""); code != fault.Unauthorized {
			t.Fatalf("guess %d: %s", n, code)
		}
	}
	for address, want := range map[string]fault.Code{"2001:db8:0:ffff::1": fault.RateLimited,
		"2001:db8:1::1": "", "192.0.2.1": ""} {
		if _, code := r.try(address, email, password, ""); code != want {
			t.Errorf("from %s: %q", address, code)
		}
	}
	if _, code := r.try("2001:db8:0:ffff::1", email, password, opened.Device); code != "" {
		t.Errorf("a known device: %q", code)
	}
}

// TestDevicesShareALimit: whoever collects known devices has no more guesses for it.
func TestDevicesShareALimit(t *testing.T) {
	r := newRig(t)
	account := r.state.View().AccountByEmail(email).ID
	for n := range guessesOfDevices.Count {
		if _, code := r.try("192.0.2.1", email, "wrong", r.newDevice(account)); code !=
			fault.Unauthorized {
			t.Fatalf("guess %d: %s", n, code)
		}
	}
	if _, code := r.try("192.0.2.1", email, password, r.newDevice(account)); code !=
		fault.RateLimited {
		t.Errorf("one more: %q", code)
	}
	if _, code := r.try("192.0.2.1", email, password, ""); code != "" {
		t.Errorf("an unknown browser: %q", code)
	}
}

func TestBlockedCustomersDoNotSignIn(t *testing.T) {
	r := newRig(t)
	r.state.Must(t, client.BlockCustomer{Customer: "ann", By: "root"})
	if _, code := r.try("192.0.2.1", email, password, ""); code != fault.CustomerBlocked {
		t.Errorf("blocked, with the password: %q", code)
	}
	if _, code := r.try("192.0.2.1", email, "wrong", ""); code != fault.Unauthorized {
		t.Errorf("blocked, without the password: %q", code)
	}
}

package membership

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hashicorp/memberlist"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testProbe = 50 * time.Millisecond

func testConfig(name string, join ...string) Config {
	return Config{Name: name, Cluster: "reef", Key: bytes.Repeat([]byte{7}, KeyBytes),
		Listen: "127.0.0.1:0", Join: join,
		Probe: testProbe, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
		Info: Info{Roles: []string{"fetcher"}, Address: name + ":1", Version: "1.0.0", Capacity: 2,
			Boot: ids.ID{1}}}
}

func open(t *testing.T, config Config) *Membership {
	t.Helper()
	m, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func address(m *Membership) string { return m.Self().Gossip.String() }

// until waits for members that satisfy a condition.
func until(t *testing.T, m *Membership, what string, ok func([]Member) bool) {
	t.Helper()
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		changed := m.Changed()
		members := m.Members()
		if ok(members) {
			return
		}
		select {
		case <-changed:
		case <-patience.Done():
			t.Fatalf("%s never sees %s; it sees %+v", m.config.Name, what, members)
		}
	}
}

func names(members []Member) string {
	var list []string
	for _, m := range members {
		list = append(list, m.Name)
	}
	return strings.Join(list, " ")
}

func sees(want string) func([]Member) bool {
	return func(members []Member) bool { return names(members) == want }
}

func TestNodesFindEachOtherThroughAnyOfThem(t *testing.T) {
	a := open(t, testConfig("a"))
	b := open(t, testConfig("b", address(a)))
	c := open(t, testConfig("c", "127.0.0.1:1", address(b)))
	for _, m := range []*Membership{a, b, c} {
		until(t, m, "all three", sees("a b c"))
	}
	for _, member := range a.Members() {
		want := testConfig(member.Name).Info
		if fmt.Sprint(member.Info) != fmt.Sprint(want) {
			t.Errorf("%s says %+v, want %+v", member.Name, member.Info, want)
		}
	}
}

// A node started before those that it joins keeps trying; a name is resolved.
func TestJoiningGoesOnUntilSomebodyAnswers(t *testing.T) {
	first := open(t, testConfig("a"))
	port := first.Self().Gossip.Port()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	early := open(t, testConfig("b", fmt.Sprintf("localhost:%d", port)))
	if _, err := early.Contact(t.Context()); err == nil {
		t.Fatal("somebody answers where nobody is")
	}
	late := testConfig("a")
	late.Listen = fmt.Sprintf("127.0.0.1:%d", port)
	open(t, late)
	until(t, early, "the node that came late", sees("a b"))
}

// A node that nobody answers logs that, and why, at a readable rate.
func TestNobodyAnswersIsTold(t *testing.T) {
	other := testConfig("z")
	other.Key = bytes.Repeat([]byte{8}, KeyBytes) // of another authority
	foreign := address(open(t, other))
	for _, c := range []struct{ join, says string }{
		{"127.0.0.1:1", "127.0.0.1:1"}, {"127.0.0.1:99999", "is not one"}, {"nohost", "HOST:PORT"},
		{foreign, "error="},
	} {
		log := &logged{}
		config := testConfig("a", c.join)
		config.Logger = slog.New(slog.NewTextHandler(log, nil))
		m := open(t, config)
		log.until(t, "nobody answers at the addresses to join")
		for range 3 {
			if _, err := m.Contact(t.Context()); err == nil {
				t.Errorf("%s answers", c.join)
			}
		}
		text := log.String()
		if strings.Count(text, "nobody answers") != 1 || !strings.Contains(text, "level=WARN") ||
			!strings.Contains(text, c.join) || !strings.Contains(text, c.says) {
			t.Errorf("to join %s: %s", c.join, text)
		}
	}
}

func TestWhatANodeSaysReachesTheOthers(t *testing.T) {
	a := open(t, testConfig("a"))
	b := open(t, testConfig("b", address(a)))
	until(t, a, "b", sees("a b"))
	if err := b.Update(func(info *Info) { info.Leaving, info.Capacity = true, 9 }); err != nil {
		t.Fatal(err)
	}
	until(t, a, "what b says", func(members []Member) bool {
		return len(members) == 2 && members[1].Leaving && members[1].Capacity == 9
	})
	if err := b.Update(func(info *Info) { info.Version = strings.Repeat("x", 600) }); err == nil {
		t.Fatal("more than gossip carries is taken")
	}
	if b.Self().Version != "1.0.0" {
		t.Fatal("what was refused is kept")
	}
}

// Founding relies on this: when Sync returns, the node knows what each of the others had gossiped
// before it answered.
func TestSyncExchangesAtOnce(t *testing.T) {
	slow := func(name string, join ...string) Config {
		config := testConfig(name, join...)
		config.Probe = time.Hour // no periodic gossip within the test
		return config
	}
	a := open(t, slow("a"))
	b := open(t, slow("b", address(a)))
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(b.Members()); got != "a b" {
		t.Fatalf("after an exchange b sees %s", got)
	}
	until(t, a, "b", sees("a b")) // it answers before it processes what it received
	if err := a.Update(func(info *Info) { info.Founding = true }); err != nil {
		t.Fatal(err)
	}
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !b.Members()[0].Founding {
		t.Fatal("what a said before the exchange is not known after it")
	}
}

func TestGoneAndLeft(t *testing.T) {
	a := open(t, testConfig("a"))
	leaves := testConfig("b", address(a))
	leaves.Probe = 5 * time.Second // how long Leave waits until its farewell is sent
	b := open(t, leaves)
	c := open(t, testConfig("c", address(a)))
	until(t, a, "all three", sees("a b c"))
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, a, "that b left", sees("a c"))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, a, "that c is gone", sees("a"))
	if _, gone := a.GoneSince("c"); !gone {
		t.Error("it is not known since when c is gone")
	}
	// The names come back at other ports.
	open(t, testConfig("b", address(a)))
	open(t, testConfig("c", address(a)))
	until(t, a, "both again", sees("a b c"))
	if since, gone := a.GoneSince("c"); gone {
		t.Errorf("c is there, and gone since %v", since)
	}
}

// Names of nodes that are gone for good do not add up.
func TestGoneIsBounded(t *testing.T) {
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	m := &Membership{config: Config{Clock: now}, gone: map[string]time.Time{}}
	for i := range maxGone + 1 {
		m.rememberGone(fmt.Sprint("f", i))
		now.Advance(time.Second)
	}
	_, oldest := m.GoneSince("f0")
	if _, next := m.GoneSince("f1"); len(m.gone) != maxGone || oldest || !next {
		t.Errorf("%d are remembered, the oldest of them %v, the next %v", len(m.gone), oldest, next)
	}
}

// A node that was alone saw all others go at once. When it is no longer alone, it says of those
// still missing only that they are gone now.
func TestGoneWhileAlone(t *testing.T) {
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	m := &Membership{config: Config{Clock: now, Name: "a", Logger: slog.New(slog.DiscardHandler)},
		gone: map[string]time.Time{}, others: map[string]other{}, changed: make(chan struct{})}
	meta, err := encodeInfo(Info{})
	if err != nil {
		t.Fatal(err)
	}
	m.rememberGone("b")
	m.rememberGone("f")
	for range 2 { // the second one is heard by a node that is not alone
		now.Advance(time.Hour)
		events{m}.heard(&memberlist.Node{Name: "b", Meta: meta}, "")
	}
	if since, _ := m.GoneSince("f"); !since.Equal(now.Now().Add(-time.Hour)) {
		t.Errorf("f is gone since %v, and it is %v", since, now.Now())
	}
}

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) holds(text string) bool { return strings.Contains(l.String(), text) }

func (l *logged) until(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !l.holds(text); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never logged: %s\n%s", text, l.text.String())
		}
	}
}

func TestSecondNodeOfANameIsRefused(t *testing.T) {
	log := &logged{}
	config := testConfig("a")
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	a := open(t, config)
	first := testConfig("b", address(a))
	first.Info.Capacity = 1
	b := open(t, first)
	until(t, a, "b", sees("a b"))
	own := &logged{}
	second := testConfig("b", address(a))
	second.Info.Capacity = 2
	second.Logger = slog.New(slog.NewTextHandler(own, nil))
	open(t, second)
	log.until(t, "two nodes have the same name")
	own.until(t, "another node has the name of this one")
	if members := a.Members(); names(members) != "a b" || members[1].Capacity != 1 ||
		members[1].Gossip != b.Self().Gossip {
		t.Fatalf("the second node took the name: %+v", members)
	}
}

func TestStrangersAreNotHeard(t *testing.T) {
	a := open(t, testConfig("a"))
	wrongKey := testConfig("b", address(a))
	wrongKey.Key = bytes.Repeat([]byte{8}, KeyBytes)
	otherCluster := testConfig("c", address(a))
	otherCluster.Cluster = "atoll"
	for _, config := range []Config{wrongKey, otherCluster} {
		if _, err := open(t, config).Contact(t.Context()); err == nil {
			t.Errorf("node %s is answered", config.Name)
		}
	}
	if got := names(a.Members()); got != "a" {
		t.Fatalf("a sees %s", got)
	}
}

func TestNetworksAreChecked(t *testing.T) {
	config := testConfig("a")
	config.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	a := open(t, config)
	outside := testConfig("b", address(a))
	outside.Listen = "127.0.0.2:0"
	b := open(t, outside)
	inside := open(t, testConfig("c", address(a)))
	until(t, a, "the node inside", sees("a c"))
	_, _ = b.Contact(t.Context())
	if got := names(a.Members()); got != "a c" {
		t.Fatalf("a sees %s", got)
	}
	until(t, inside, "a", func(members []Member) bool { return members[0].Name == "a" })
}

// Two clusters founded under one name and key see each other and keep apart.
func TestOtherClusterOfTheSameNameIsLeftOut(t *testing.T) {
	log := &logged{}
	config := testConfig("a")
	config.Info.Cluster = ids.ID{1}
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	a := open(t, config)
	other := testConfig("b", address(a))
	other.Info.Cluster = ids.ID{2}
	b := open(t, other)
	none := open(t, testConfig("c", address(a)))
	log.until(t, "ANOTHER CLUSTER OF THE SAME NAME")
	until(t, a, "the node without a cluster", sees("a c"))
	until(t, none, "everybody", sees("a b c"))
	until(t, b, "the node without a cluster", sees("b c"))
	if err := none.Update(func(info *Info) { info.Cluster = ids.ID{1} }); err != nil {
		t.Fatal(err)
	}
	until(t, b, "that it belongs to the other", sees("b"))
	until(t, none, "its own cluster alone", sees("a c"))
}

func TestSettingsAreChecked(t *testing.T) {
	for what, spoil := range map[string]func(*Config){
		"a short key":        func(c *Config) { c.Key = c.Key[1:] },
		"no name":            func(c *Config) { c.Name = "" },
		"no cluster":         func(c *Config) { c.Cluster = "" },
		"no pace":            func(c *Config) { c.Probe = 0 },
		"a name to listen":   func(c *Config) { c.Listen = "localhost:0" },
		"a wrong port":       func(c *Config) { c.Advertise = "127.0.0.1:70000" },
		"too much to say":    func(c *Config) { c.Info.Address = strings.Repeat("a", 600) },
		"an unknown address": func(c *Config) { c.Advertise = "no such name" },
	} {
		config := testConfig("a")
		spoil(&config)
		if m, err := Open(config); err == nil {
			_ = m.Close()
			t.Errorf("%s is taken", what)
		}
	}
}

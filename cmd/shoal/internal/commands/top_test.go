package commands

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/authority"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
)

var update = flag.Bool("update", false, "write the golden frames anew")

func millis(n int64) *int64 { return &n }

// seenCluster is a fully visible, busy cluster, with one draining and one failed node.
func seenCluster() *watch {
	at := time.Date(2026, 11, 21, 17, 3, 21, 0, time.UTC)
	lag := map[string]int64{"tasks": 1234, "pages": 12, "receipts": 0}
	return &watch{now: func() time.Time { return at },
		status: api.Status{Node: "c1", Leader: "c2", Term: 7, Commands: 5120, Shards: 64, Owned: 64,
			OpenJobs: 3, Out: 12345,
			Pages: 9300, PageErrors: 31, Lag: lag},
		before: api.Status{Node: "c1", Leader: "c2", Term: 7, Commands: 5100, Shards: 64, Owned: 64,
			Pages: 9000, PageErrors: 30},
		at: at, atBefore: at.Add(-2 * time.Second),
		nodes: []api.Node{
			{Name: "a1", State: "UNKNOWN", Roles: []string{"apiserver"}, Suffrage: "NONVOTER",
				Lag: new(uint64(12))},
			{Name: "c1", State: "ALIVE", Roles: []string{"controlplane"}, Suffrage: "VOTER",
				Lag: new(uint64)},
			{Name: "c2", State: "ALIVE", Roles: []string{"controlplane"}, Suffrage: "LEADER",
				Lag: new(uint64)},
			{Name: "fetcher-rack-17-slot-4", State: "ALIVE",
				Roles: []string{"fetcher", "ingest", "billing"}, Suffrage: "NONVOTER",
				Capacity: 2, Shards: 32, Moving: 4, Open: 10234, PagesPerSecond: 1061.25,
				LeaseAgeMillis: millis(1200),
				Lag:            new(uint64)},
			{Name: "f2", State: "DRAINING", Roles: []string{"fetcher"}, Suffrage: "NONVOTER",
				Capacity: 1, Shards: 16,
				Open: 7, PagesPerSecond: 3, LeaseAgeMillis: millis(400),
				Lag: new(uint64(1_234_567))},
			{Name: "f3", State: "FAILED", Roles: []string{"fetcher"}, Capacity: 1, Shards: 16,
				LeaseAgeMillis: millis(72_000)},
			{Name: "f4", State: "UNKNOWN", Roles: identity.Roles(), Capacity: 1},
		}}
}

func TestTopFrames(t *testing.T) {
	noLeader := seenCluster()
	noLeader.status.Leader, noLeader.before.Node = "", "c2"
	noLeader.problem = errors.New("no leader can be reached from this node (503 unavailable)\n  " +
		"correlation id 17")
	early := &watch{now: seenCluster().now}
	for name, c := range map[string]struct {
		w             *watch
		width, height int
	}{
		"busy":      {seenCluster(), 80, 24},
		"no-leader": {noLeader, 80, 24},
		"short":     {seenCluster(), 80, 8},
		"narrow":    {seenCluster(), 40, 24},
		"early":     {early, 80, 24},
	} {
		t.Run(name, func(t *testing.T) {
			var frame strings.Builder
			for _, line := range c.w.frame(c.width, c.height) {
				mark := " "
				if line.style != plain {
					mark = map[style]string{bold: "*", red: "!", yellow: "~"}[line.style]
				}
				frame.WriteString(mark + "|" + line.text + "\n")
			}
			path := filepath.Join("testdata", "top-"+name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(frame.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if frame.String() != string(golden) {
				t.Errorf("the frame is\n%s\nwant\n%s", frame.String(), golden)
			}
		})
	}
}

// TestTopFrameFits: every frame fits its screen and contains nothing that a terminal would obey.
func TestTopFrameFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := seenCluster()
		w.status = rapid.Make[api.Status]().Draw(t, "status")
		w.nodes = rapid.SliceOf(rapid.Make[api.Node]()).Draw(t, "nodes")
		width, height := rapid.IntRange(1, 200).Draw(t, "width"),
			rapid.IntRange(1, 40).Draw(t, "height")
		lines := w.frame(width, height)
		if len(lines) > height {
			t.Fatalf("%d lines on a screen of %d", len(lines), height)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line.text); n > width ||
				line.text != terminal.Printable(line.text) {
				t.Fatalf("%q has %d characters on a screen of %d", line.text, n, width)
			}
		}
	})
}

func TestTopShortens(t *testing.T) {
	for want, got := range map[string]string{
		"9999": shortCount(9999), "10k": shortCount(10_000), "1234k": shortCount(1_234_567),
		"9999M": shortCount(9_999_999_999),
		"18E":   shortCount(1<<64 - 1), "0.4s": shortly(400 * time.Millisecond),
		"59.9s": shortly(59_900 * time.Millisecond),
		"1m":    shortly(time.Minute), "99h": shortly(99 * time.Hour),
		"5d":      shortly(120 * time.Hour),
		"all":     shortRoles(identity.Roles()),
		"ctl,api": shortRoles([]string{"controlplane", "apiserver"}),
		"new":     shortRoles([]string{"new"}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// pages is a screen that records everything drawn.
type pages struct {
	all   bytes.Buffer
	drawn chan struct{} // signalled for each frame
}

func (p *pages) Write(data []byte) (int, error) {
	n, err := p.all.Write(data)
	p.drawn <- struct{}{}
	return n, err
}

func TestTopRedrawsUntilAKey(t *testing.T) {
	fake := apitest.New(t)
	fake.Nodes = []string{apitest.TopNode}
	keys := make(chan byte)
	out := &pages{drawn: make(chan struct{}, 100)}
	s := &screen{out: out, size: func() (int, int) { return 80, 24 },
		restore: func() error { return nil },
		keys: func(ctx context.Context) (byte, bool) {
			select {
			case key := <-keys:
				return key, true
			case <-ctx.Done():
				return 0, false
			}
		}}
	token, err := authority.SignToken(fake.DataDir(t), "", true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	w := &watch{now: time.Now, connect: func(context.Context) (*api.Client, error) {
		if looks++; looks == 2 {
			return nil, fmt.Errorf("%w: for a moment", api.ErrUnreachable)
		}
		client := api.New(fake.URL, token, clock.System{}, nil)
		client.Impatient()
		return client, nil
	}}
	fake.Refuse["GET /api/admin/nodes"] = apitest.Problem{Status: 503, Code: "unavailable",
		Detail: "elections are held", Times: 1}
	ended := make(chan error, 1)
	again := make(chan time.Time)
	go func() {
		ended <- w.run(t.Context(), s,
			func(time.Duration) <-chan time.Time { return again })
	}()
	<-out.drawn // a node without a leader
	again <- time.Time{}
	<-out.drawn // an unreachable one
	again <- time.Time{}
	<-out.drawn
	keys <- 'x' // means nothing
	keys <- 'q'
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	w.close()
	frames := strings.Split(out.all.String(), toTop)[1:]
	for i, want := range []string{"elections are held", "for a moment", "ctl,fetch"} {
		if !strings.Contains(frames[i], want) || !strings.HasSuffix(frames[i], clearBelow) ||
			strings.Count(frames[i], "\r\n") != strings.Count(frames[i], clearRight)-1 {
			t.Errorf("frame %d is %q, want %q in it", i+1, frames[i], want)
		}
	}
	if len(frames) != 3 {
		t.Errorf("%d frames, want 3", len(frames))
	}
}

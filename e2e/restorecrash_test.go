package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/skew"
)

// Where a restore is killed: while the state is replaced, and a day later, while undone data is
// removed from the row store.
var (
	replacing = []string{"raft.before_restore", "raft.before_replace", "raft.after_restore"}
	dropping  = []string{"leader.before_drop:1", "leader.before_drop:2", "rowstore.after_commit:2",
		"leader.before_forget:1", "leader.after_forget:1"}
)

// grace is longer than undone data is kept.
const grace = 25 * time.Hour

// TestCrashesOfARestore kills the process twice: in the middle of a restore, and of removing what
// it undid. The state is always the old or the new one. In the end money, rows and recount are the
// backup's, and nothing is stored of undone runs.
func TestCrashesOfARestore(t *testing.T) {
	t.Parallel()
	for seed := range max(*seeds, len(dropping)) {
		first, second := replacing[seed%len(replacing)], dropping[seed%len(dropping)]
		t.Run(fmt.Sprintf("%s,%s/%d", first, second, seed), func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, suite.PastWeb())
			args := append(suite.PastArgs(), "--no-rate-limits")
			c := &crashCase{service: &service{single: newSingle(t, args, web)}}
			late := &late{single: c.single, clock: filepath.Join(t.TempDir(), "clock")}
			c.Service = &suite.Service{T: t, Product: late, Web: web}
			c.env = []string{skew.File + "=" + late.clock}

			c.bring(crash.At + "=" + first)
			past := suite.NewPast(c.Service)
			if err := past.Restore(); err == nil || !c.buried() {
				t.Fatalf("the process survives %s: %v", first, err)
			}
			c.bring()
			if restored := past.Restored(); restored != (first != replacing[0]) {
				t.Errorf("killed at %s, the state is the backup's: %v", first, restored)
			} else if !restored || seed%2 == 0 { // without an answer the operator retries
				if err := past.Restore(); err != nil {
					t.Fatal(err)
				}
			}
			past.Check()
			if undone := past.Undone(); undone != 2 {
				t.Errorf("%d runs are undone, want 2", undone)
			}
			c.Down(t)

			late.pass(t, grace)
			c.dies(crash.At + "=" + second)
			c.bring()
			for ctx := suite.Within(t, suite.Patience); past.Undone() > 0; {
				select {
				case <-ctx.Done():
					t.Fatal("what was undone stays")
				case <-time.After(50 * time.Millisecond):
				}
			}
			past.Check()
			past.CheckStored(false)
		})
	}
}

// dies starts a process and requires it to kill itself.
func (c *crashCase) dies(env ...string) {
	c.T.Helper()
	p := c.launch(c.T, env...)
	select {
	case <-p.Ended():
	case <-time.After(suite.ReadyWithin):
		c.T.Fatalf("the process survives %v", env)
	}
	if !c.buried() {
		c.T.Fatalf("the process survives %v", env)
	}
}

// late is a product whose clock is ahead of the machine's.
type late struct {
	*single
	clock string // file
	ahead time.Duration
}

// pass lets time pass while no process runs.
func (l *late) pass(t *testing.T, d time.Duration) {
	t.Helper()
	l.ahead += d
	if err := skew.Set(l.clock, l.ahead); err != nil {
		t.Fatal(err)
	}
}

// Mint makes tokens with the product's time, since commands use the machine's.
func (l *late) Mint(_ context.Context, args ...string) (string, error) {
	return apiserver.MintToken(l.data, apiserver.SelfCustomer, slices.Contains(args, "--admin"),
		time.Now().Add(l.ahead), time.Hour)
}

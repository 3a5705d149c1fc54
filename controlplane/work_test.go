package controlplane

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// TestWorkOfAnotherNode: a follower takes its turns through the leader and sees them in its own
// copy of the state. It learns the safe time. Its roles limit its work.
func TestWorkOfAnotherNode(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	config := c.config("i-1", identity.Ingest)
	config.Log, config.Store = c.configs[0].Log, c.store
	c.configs, c.running = append(c.configs, config), append(c.running, nil)
	c.start(1)
	c.add(1, false)
	c.ready(1)
	r, ctx := c.at(1), patient(t)
	table := client.Work(r, "i-1", r.config.Boot)
	if look := table.Look(time.Now(), []string{work.Expire}); len(look.Missing) != 1 {
		t.Errorf("of an empty table: %+v", look)
	}
	if err := table.Recur(ctx, ids.ID{1}, work.Expire, false); err != nil {
		t.Fatal(err)
	}
	if look := table.Look(time.Now(), []string{work.Expire}); !look.Claimable {
		t.Errorf("of a table with an item: %+v", look)
	}
	wants := func(kind string) work.Turn {
		return work.Turn{Lease: time.Minute,
			Wants: []work.Want{{Kind: kind, Most: 1, PerCustomer: 1}}}
	}
	if err := table.Exchange(ctx, wants(work.Expire)); err != nil {
		t.Fatal(err)
	}
	if held := table.Held(); len(held) != 1 || held[0].Kind != work.Expire {
		t.Errorf("it holds %+v", held)
	}
	for what, err := range map[string]error{
		"another role's kind":  table.Exchange(ctx, wants(work.Orphans)),
		"another role's item":  table.Recur(ctx, ids.ID{2}, work.Recount, false),
		"another node's turns": client.Work(r, "voter-0", ids.ID{3}).Exchange(ctx, work.Turn{}),
	} {
		if fault.CodeOf(err) != fault.ScopeRejected {
			t.Errorf("%s: %v", what, err)
		}
	}
	var safe time.Time
	until(t, "the time by which things may go", func() bool {
		var err error
		safe, err = r.SafeTime(ctx)
		return err == nil
	})
	if off := time.Since(safe); off < -time.Minute || off > time.Minute {
		t.Errorf("things may go by a time that is off by %v", off)
	}
}

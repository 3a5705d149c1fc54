package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// TestSucceedFreesWork: after a restore nobody holds an item, and no epoch is used again, so that
// older reports change nothing.
func TestSucceedFreesWork(t *testing.T) {
	restored := clusterState(t, 5, 100, ids.ID{1}, 4, "old")
	today := clusterState(t, 9, 900, ids.ID{1}, 4, "new")
	put := func(s *Store, items ...Work) {
		err := s.Update(s.index+1, 0, func(tx *Tx) error {
			for _, item := range items {
				tx.PutWork(&item)
			}
			tx.PutWorker(&Worker{Node: "new", Boot: ids.ID{1}, Until: 50})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(restored,
		Work{ID: ids.ID{1}, Kind: "x", State: WorkHeld, Node: "new", Boot: ids.ID{1}, Epoch: 3},
		Work{ID: ids.ID{2}, Kind: "x", State: WorkWaiting, At: 7, Epoch: 9},
		Work{ID: ids.ID{3}, Kind: "x", State: WorkFailed, Epoch: 1})
	put(today,
		Work{ID: ids.ID{1}, Kind: "x", State: WorkHeld, Node: "new", Boot: ids.ID{1}, Epoch: 8},
		Work{ID: ids.ID{2}, Kind: "x", State: WorkReady, Epoch: 4},
		Work{ID: ids.ID{4}, Kind: "x", State: WorkReady})
	if _, err := restored.Succeed(today, Restoration{}); err != nil {
		t.Fatal(err)
	}
	view := restored.View()
	for id, want := range map[byte]Work{
		1: {State: WorkReady, Epoch: 8}, 2: {State: WorkWaiting, Epoch: 9},
		3: {State: WorkFailed, Epoch: 1},
	} {
		got := view.WorkItem(ids.ID{id})
		if got == nil || got.State != want.State || got.Epoch != want.Epoch || got.Node != "" ||
			!got.Boot.IsZero() {
			t.Errorf("item %d: %+v, want %+v", id, got, want)
		}
	}
	if view.WorkItem(ids.ID{4}) != nil || view.Worker("new") != nil {
		t.Error("what the backup has not is there")
	}
}

func TestWhatStandsStill(t *testing.T) {
	const now = 10_000
	failing := Work{State: WorkWaiting, At: 11_000, Advanced: 1000, Failures: 1}
	again := Work{State: WorkHeld, At: 9000, Advanced: 1000, Failures: 3}
	for what, c := range map[string]struct {
		item Work
		want int64
	}{
		"enqueued":               {Work{State: WorkReady, At: 4000, Advanced: 4000}, 6000},
		"held since progress":    {Work{State: WorkHeld, At: 1000, Advanced: 9000}, 1000},
		"resting":                {Work{State: WorkWaiting, At: 11_000, Advanced: 1000}, 0},
		"rested, and not woken":  {Work{State: WorkWaiting, At: 7000, Advanced: 1000}, 3000},
		"rested, and woken":      {Work{State: WorkReady, At: 7000, Advanced: 7000}, 3000},
		"failing":                {failing, 9000},
		"failing, tried again":   {again, 9000},
		"given up":               {Work{State: WorkFailed, At: 1, Advanced: 1, Failures: 3}, 0},
		"of a clock that is off": {Work{State: WorkReady, At: 20_000, Advanced: 20_000}, 0},
	} {
		if got := c.item.StoodStill(now); got != c.want {
			t.Errorf("%s: %d ms, want %d", what, got, c.want)
		}
	}
}

// Items that wait for their turn stand still only if their kind does.
func TestWhatWaitsForItsTurn(t *testing.T) {
	const now = 10_000
	ready := Work{State: WorkReady, At: 1000, Advanced: 1000, Kind: "merge"}
	failed := Work{State: WorkReady, At: 1000, Advanced: 1000, Kind: "merge", Failures: 1, Epoch: 1}
	held := Work{State: WorkHeld, At: 1000, Advanced: 8000, Kind: "merge", Epoch: 1}
	other := Work{State: WorkHeld, At: 1000, Advanced: 9000, Kind: "match", Epoch: 1}
	young := Work{State: WorkReady, At: 9000, Advanced: 9000, Kind: "merge"}
	given := Work{State: WorkFailed, At: 9000, Advanced: 9000, Kind: "merge", Epoch: 3}
	for what, c := range map[string]struct {
		items []Work
		want  int64
	}{
		"alone":                      {[]Work{ready}, 9000},
		"beside one that gets on":    {[]Work{ready, held}, 2000},
		"beside another kind's":      {[]Work{ready, other}, 9000},
		"beside one that is new":     {[]Work{ready, young}, 9000},
		"beside one that was failed": {[]Work{ready, given}, 9000},
		"failed itself":              {[]Work{failed, held}, 9000},
		"nothing":                    {nil, 0},
	} {
		s := clusterState(t, 5, 100, ids.ID{1}, 4, "n")
		err := s.Update(6, 0, func(tx *Tx) error {
			for n, item := range c.items {
				item.ID = ids.ID{byte(n + 1)}
				tx.PutWork(&item)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.View().WorkStoodStill(now)["merge"]; got != c.want {
			t.Errorf("%s: %d ms, want %d", what, got, c.want)
		}
	}
}

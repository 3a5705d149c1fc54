package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// TestSucceedFreesWork: after a restore nobody holds anything, and the number of no holding comes
// again, so that what is reported of before changes nothing.
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

package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

func clusterState(t *testing.T, index uint64, now int64, id ids.ID, shards uint16, owner string) *Store {
	t.Helper()
	s := NewStore()
	err := s.Update(index, now, func(tx *Tx) error {
		tx.PutCluster(&Cluster{ID: id, Shards: shards, HashSecret: index})
		tx.PutNode(&Node{Name: owner, Boot: id})
		for n := range shards {
			tx.PutShard(&Shard{Number: n, Owner: owner, Epoch: index})
		}
		tx.PutCustomer(&Customer{Ref: "of " + owner})
		tx.NextDispatch()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSucceedKeepsWhatIsAboutMachines(t *testing.T) {
	restored := clusterState(t, 5, 100, ids.ID{1}, 4, "old")
	today := clusterState(t, 9, 900, ids.ID{2}, 4, "new")
	today.dispatched = 77
	if err := restored.Succeed(today); err != nil {
		t.Fatal(err)
	}
	view := restored.View()
	if c := view.Cluster(); c.ID != (ids.ID{2}) || c.HashSecret != 5 {
		t.Errorf("cluster: %+v", c)
	}
	if view.Node("old") != nil || view.Node("new") == nil {
		t.Errorf("nodes: %+v", view.Nodes())
	}
	for _, shard := range view.Shards() {
		if shard.Owner != "new" || shard.Epoch != 9 {
			t.Errorf("shard: %+v", shard)
		}
	}
	if view.Customer("of old") == nil || view.Customer("of new") != nil {
		t.Error("customers are not the restored ones")
	}
	if index, now := restored.Progress(); index != 9 || now != 900 || restored.dispatched != 77 {
		t.Errorf("index %d, time %d, dispatch %d: something counts back", index, now, restored.dispatched)
	}
	newer := clusterState(t, 50, 5000, ids.ID{1}, 4, "old")
	if err := newer.Succeed(today); err != nil {
		t.Fatal(err)
	}
	if index, now := newer.Progress(); index != 50 || now != 5000 {
		t.Errorf("index %d, time %d: something counts back", index, now)
	}
}

func TestSucceedRefusesOtherShards(t *testing.T) {
	today := clusterState(t, 9, 900, ids.ID{2}, 4, "new")
	if clusterState(t, 5, 100, ids.ID{1}, 8, "old").Succeed(today) == nil || NewStore().Succeed(today) == nil {
		t.Fatal("a state with other shards, or none, is taken")
	}
}

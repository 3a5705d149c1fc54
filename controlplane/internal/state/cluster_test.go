package state

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// A run may rely on the tiers that all of the cluster's fetchers support.
func TestTiersOfACluster(t *testing.T) {
	plain, both := model.TiersOf(model.Plain), model.TiersOf(model.Plain, model.Render)
	s := NewStore()
	change := func(do func(tx *Tx)) {
		t.Helper()
		if err := s.Update(1, 1, func(tx *Tx) error { do(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want model.TierSet) {
		t.Helper()
		if got := s.View().Tiers(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("nobody is there", plain)
	change(func(tx *Tx) {
		tx.PutNode(&Node{Name: "api"})
		tx.PutNode(&Node{Name: "a", Capacity: 1, Tiers: model.AllTiers})
		tx.PutNode(&Node{Name: "b", Capacity: 1, Tiers: model.TiersOf(model.Render)})
		tx.PutShard(&Shard{Number: 0})
		tx.PutShard(&Shard{Number: 1})
	})
	check("no shard has an owner", both)
	change(func(tx *Tx) { tx.PutShard(&Shard{Number: 0, Owner: "a"}) })
	check("one fetches", model.AllTiers)
	change(func(tx *Tx) { tx.PutShard(&Shard{Number: 1, Owner: "b"}) })
	check("both fetch", both)
	change(func(tx *Tx) { tx.PutNode(&Node{Name: "b", Capacity: 1}) })
	check("one is of an earlier version", plain)
}

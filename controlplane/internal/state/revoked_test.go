package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// Whatever was removed since a backup gives no access after a restore, whichever file is restored
// and however often.
func TestRemovedStaysRemoved(t *testing.T) {
	id := ids.ID{1}
	fill := func(tx *Tx) {
		tx.PutShare(&Share{Group: id, Email: "bob@x.test", Owner: "ann", CreatedAt: tx.Now})
		tx.PutAccount(&Account{ID: id, Email: "bob@x.test", CreatedAt: tx.Now})
		tx.PutPasskey(&Passkey{ID: id, Account: id, CreatedAt: tx.Now})
	}
	remove := func(tx *Tx) {
		tx.RemoveShare(tx.Share(id, "bob@x.test"))
		tx.RemoveAccount(tx.Account(id))
		tx.RemovePasskey(tx.Passkey(id))
	}
	removeNoted := func(tx *Tx) { // as commands do
		share := tx.Share(id, "bob@x.test")
		remove(tx)
		tx.PutRevoked(&Revoked{ID: share.RevokedID(), At: tx.Now})
		tx.PutRevoked(&Revoked{ID: id, At: tx.Now})
	}
	begin := func() *timeline {
		return &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{9}, 4, "n")}
	}
	check := func(l *timeline, name string, want bool) {
		t.Helper()
		view := l.now.View()
		share, account, passkey := view.Share(id, "bob@x.test") != nil, view.Account(id) != nil,
			view.Passkey(id) != nil
		if share != want || account != want || passkey != want {
			t.Errorf("%s: share %v, account %v, passkey %v, want %v", name, share, account, passkey,
				want)
		}
	}
	l := begin()
	l.do(fill)
	older := l.save()
	l.do(func(*Tx) {})
	a := l.save()
	l.restore(a, false)
	check(l, "restored", true)
	l.do(remove)
	l.restore(a, false)
	check(l, "the same file again", false)
	l.restore(older, false)
	check(l, "an older one", false)
	l.restore(a, false)
	check(l, "the first again", false)

	// The wrong file lacks what the right one has, so only a mark says what was removed.
	l = begin()
	wrong := l.save()
	l.do(fill)
	right := l.save()
	l.do(removeNoted)
	l.do(fill)
	again := l.save()
	l.restore(wrong, false)
	check(l, "the wrong file", false)
	l.restore(right, false)
	check(l, "the right one", false)
	l.restore(wrong, false)
	l.restore(again, false)
	check(l, "one that has them anew", true)
	l.do(remove)
	l.restore(again, false)
	check(l, "removed anew", false)

	// A cluster restored from another one's backup also continues from it.
	l = begin()
	l.do(fill)
	others := l.save()
	l.now = clusterState(t, 9, 900_000, ids.ID{8}, 4, "n")
	l.restore(others, false)
	check(l, "another cluster's file", true)
	l.do(remove)
	l.restore(others, false)
	check(l, "another cluster's file again", false)
}

package state

import (
	"slices"
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
		tx.PutWebhook(&Webhook{ID: id, Customer: "ann", CreatedAt: tx.Now, Deliveries: 1,
			Next: tx.Now})
		tx.PutDelivery(&Delivery{Webhook: id, State: DeliveryPending, Due: tx.Now})
	}
	remove := func(tx *Tx) {
		tx.RemoveShare(tx.Share(id, "bob@x.test"))
		tx.RemoveAccount(tx.Account(id))
		tx.RemovePasskey(tx.Passkey(id))
		tx.RemoveDelivery(tx.Delivery(id, ids.ID{}))
		tx.RemoveWebhook(tx.Webhook(id))
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
		for kind, there := range map[string]bool{"share": view.Share(id, "bob@x.test") != nil,
			"account": view.Account(id) != nil, "passkey": view.Passkey(id) != nil,
			"webhook": view.Webhook(id) != nil, "delivery": view.Delivery(id, ids.ID{}) != nil} {
			if there != want {
				t.Errorf("%s: the %s is there: %v", name, kind, there)
			}
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

// A restored webhook is as today: its address, its secret and whether it is on. What has arrived
// since the backup is not sent again.
func TestWebhooksAreAsToday(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{9}, 4, "n")}
	pending := func(hook, message byte, due int64) *Delivery {
		return &Delivery{Webhook: ids.ID{hook}, Notice: Notice{ID: ids.ID{message}},
			State: DeliveryPending, Due: due}
	}
	put := func(hooks ...*Webhook) {
		l.do(func(tx *Tx) {
			for _, hook := range hooks {
				tx.PutWebhook(hook)
			}
		})
	}
	of := func(id byte, secret, url, off string, next int64, deliveries uint32) *Webhook {
		return &Webhook{ID: ids.ID{id}, Customer: "ann", Secret: []byte(secret), URL: url,
			Off: off, Next: next, Deliveries: deliveries}
	}
	put(of(1, "leaked", "old", "", 7, 3), of(2, "same", "same", "", 5, 1))
	l.do(func(tx *Tx) {
		tx.PutDelivery(pending(1, 1, 7)) // arrives
		tx.PutDelivery(pending(1, 2, 8)) // is tried once more
		tx.PutDelivery(pending(1, 3, 9)) // is too old one day
		tx.PutDelivery(pending(2, 1, 5))
	})
	backup := l.save()
	put(of(1, "new", "new", "", 20, 3), of(2, "same", "same", WebhookStopped, 0, 1),
		of(3, "", "", "", 6, 1))
	l.do(func(tx *Tx) {
		arrived, failed := *tx.Delivery(ids.ID{1}, ids.ID{1}), *tx.Delivery(ids.ID{2}, ids.ID{1})
		arrived.State, arrived.Due = DeliveryDelivered, 0
		failed.State, failed.Due = DeliveryFailed, 0
		tx.PutDelivery(&arrived)
		tx.PutDelivery(&failed)
		tried := pending(1, 2, 30)
		tried.Tries = 1
		tx.PutDelivery(tried)
		tx.RemoveDelivery(tx.Delivery(ids.ID{1}, ids.ID{3}))
		tx.PutDelivery(pending(1, 4, 20)) // of what the restore undoes
		tx.PutDelivery(pending(3, 4, 6))
	})
	l.restore(backup, false)
	view := l.now.View()
	if hook := view.Webhook(ids.ID{1}); string(hook.Secret) != "new" || hook.URL != "new" ||
		hook.Deliveries != 2 || hook.Next != 30 {
		t.Errorf("rotated: %+v", hook)
	}
	if hook := view.Webhook(ids.ID{2}); hook.Off != WebhookStopped || hook.Next != 0 {
		t.Errorf("stopped: %+v", hook)
	}
	if view.Webhook(ids.ID{3}) != nil {
		t.Error("a webhook that was made since is there")
	}
	var due []ids.ID
	for hook := range byte(4) {
		view.DeliveriesDue(ids.ID{hook}, func(d *Delivery) bool {
			due = append(due, d.Webhook, d.Notice.ID)
			return true
		})
	}
	if !slices.Equal(due, []ids.ID{{1}, {2}}) {
		t.Errorf("due are %v", due)
	}
	if d := view.Delivery(ids.ID{1}, ids.ID{1}); d == nil || d.State != DeliveryDelivered {
		t.Errorf("what arrived: %+v", d)
	}
}

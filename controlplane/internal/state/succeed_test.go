package state

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/price"
)

func clusterState(t *testing.T, index uint64, now int64, id ids.ID, shards uint16,
	owner string) *Store {
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
	if _, err := restored.Succeed(today, Restoration{}); err != nil {
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
		t.Errorf("index %d, time %d, dispatch %d: something counts back", index, now,
			restored.dispatched)
	}
	if at := view.Cluster().RestsFrom; at != 900 {
		t.Errorf("the backup is of version 1, and its runs say from %d on that they are reruns", at)
	}
	newer := clusterState(t, 50, 5000, ids.ID{1}, 4, "old")
	if _, err := newer.Succeed(today, Restoration{}); err != nil {
		t.Fatal(err)
	}
	if index, now := newer.Progress(); index != 50 || now != 5000 {
		t.Errorf("index %d, time %d: something counts back", index, now)
	}
}

func TestSucceedRefusesOtherShards(t *testing.T) {
	today := clusterState(t, 9, 900, ids.ID{2}, 4, "new")
	for _, s := range []*Store{clusterState(t, 5, 100, ids.ID{1}, 8, "old"), NewStore()} {
		if _, err := s.Succeed(today, Restoration{}); err == nil {
			t.Fatal("a state with other shards, or none, is taken")
		}
	}
}

// timeline is a state that continues, is saved and is restored.
type timeline struct {
	t     *testing.T
	now   *Store
	count uint64
}

// do applies a command a second later.
func (l *timeline) do(apply func(*Tx)) {
	l.t.Helper()
	l.count++
	index, now := l.now.Progress()
	if err := l.now.Update(index+1, now+1000,
		func(tx *Tx) error { apply(tx); return nil }); err != nil {
		l.t.Fatal(err)
	}
}

func (l *timeline) launch(id byte) { l.do(func(tx *Tx) { tx.PutJob(sampleJob(id, tx.Now)) }) }

func sampleJob(id byte, at int64) *Job {
	return &Job{ID: ids.ID{id}, List: ids.ID{id}, Customer: "ann", Group: ids.ID{100}, Queued: at,
		Started: at}
}

func (l *timeline) mint(id byte) {
	l.do(func(tx *Tx) { tx.PutKey(&Key{ID: ids.ID{id}, Customer: "ann", Prefix: string(id)}) })
}

func (l *timeline) revoke(id byte) {
	l.do(func(tx *Tx) {
		tx.RemoveKey(tx.Key(ids.ID{id}))
		tx.PutRevoked(&Revoked{ID: ids.ID{id}, At: tx.Now})
	})
}

func (l *timeline) save() []byte { return write(l.t, l.now) }

// restore restores a saved state. The row store has all runs that ever existed.
func (l *timeline) restore(file []byte, revive bool, stored ...byte) Changes {
	l.t.Helper()
	next, err := Restore(bytes.NewReader(file))
	if err != nil {
		l.t.Fatal(err)
	}
	l.count++
	r := Restoration{Generation: ids.ID{200, byte(l.count)}, ReviveKeys: revive}
	for _, id := range stored {
		r.Stored = append(r.Stored, Undone{Job: ids.ID{id}, Customer: "ann", Group: ids.ID{100}})
	}
	changes, err := next.Succeed(l.now, r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.now = next
	return changes
}

func (l *timeline) wantUndone(jobs ...byte) {
	l.t.Helper()
	var want []ids.ID
	for _, id := range jobs {
		want = append(want, ids.ID{id})
	}
	if got := l.now.View().UndoneIn(ids.ID{100}); !slices.Equal(got, want) {
		l.t.Fatalf("undone are %v, want %v", got, want)
	}
}

func TestTheCutDecidesWhatIsUndone(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	l.launch(1)
	older := l.save() // has run 1
	l.launch(2)
	a := l.save() // has runs 1 and 2
	l.launch(3)
	if changes := l.restore(older, false); changes.Undone != 2 { // the wrong file
		t.Errorf("changes: %+v", changes)
	}
	l.wantUndone(2, 3)
	l.launch(4)
	l.restore(a, false, 3, 4) // it has pages of 2, too, but 2 started before the cut
	l.wantUndone(3, 4)
	l.launch(5)
	b := l.save()
	l.launch(6)
	l.restore(a, false, 3, 4, 5, 6)
	l.wantUndone(3, 4, 5, 6)
	l.restore(b, false, 6)
	l.wantUndone(3, 4, 6)
	generation := l.now.View().Cluster().Generation
	if generation == nil || generation.ID.IsZero() || generation.Parent.IsZero() ||
		generation.CutTime >= generation.At {
		t.Errorf("generation %+v", generation)
	}
	// A run that has left both states by its age lies before the cut and is not undone.
	l.do(func(tx *Tx) { tx.RemoveJob(tx.Job(ids.ID{1})) })
	l.restore(l.save(), false)
	l.wantUndone(3, 4, 6)
}

func TestRevokedKeysStayRevoked(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	valid := func(id byte, want bool) {
		t.Helper()
		if l.now.View().Key(ids.ID{id}) != nil != want {
			t.Fatalf("key %d is valid: %v", id, !want)
		}
	}
	first := l.save()
	l.mint(1)
	l.mint(2)
	a := l.save()
	l.revoke(1)
	l.mint(3)
	if changes := l.restore(a, false); changes.KeysKept != 1 || changes.KeysGone != 1 {
		t.Errorf("changes: %+v", changes)
	}
	valid(1, false)
	valid(2, true)
	l.restore(first, false) // the wrong file lacks the keys: they were not revoked
	valid(2, false)
	l.restore(a, false)
	valid(1, false)
	valid(2, true)
	if changes := l.restore(a, true); changes.KeysRevived != 1 {
		t.Errorf("changes: %+v", changes)
	}
	valid(1, true)
	l.restore(a, false)
	valid(1, true) // valid again through ReviveKeys
	// A key that an older binary revoked is missing, without any other trace.
	l.restore(first, false)
	l.mint(7)
	b := l.save()
	l.do(func(tx *Tx) { tx.RemoveKey(tx.Key(ids.ID{7})) })
	l.restore(b, false)
	valid(7, false)
}

func TestRevisionsGoOnAboveAllThereWere(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	put := func(revision, prices uint32) {
		l.do(func(tx *Tx) {
			tx.PutScraper(&Scraper{ID: ids.ID{1}, Customer: "ann", Revision: revision})
			tx.PutPrices(&PriceTable{Version: prices})
		})
	}
	put(1, 1)
	a := l.save()
	put(9, 4)
	l.restore(a, false)
	none := clusterState(t, 3, 50, ids.ID{1}, 4, "n")
	l.restore(write(t, none), false) // it has neither
	l.restore(a, false)
	if g := l.now.View().Cluster().Generation; g.Revisions < 9 || g.Prices != 4 {
		t.Errorf("generation %+v", g)
	}
	b := l.save()
	for revision := uint32(10); revision < 20; revision++ {
		put(revision, 4)
	}
	remove := func() {
		l.do(func(tx *Tx) { tx.RemoveScraper(tx.member(ids.ID{1}), false) })
	}
	remove()
	older := l.save()
	l.restore(b, false)
	if g := l.now.View().Cluster().Generation; g.Revisions < 19 {
		t.Errorf("the deleted scraper had the revision 19: generation %+v", g)
	}
	l.restore(older, false) // which lacks the scraper
	put(30, 4)
	remove()
	l.restore(b, false) // of which today's state is no continuation
	if g := l.now.View().Cluster().Generation; g.Revisions < 30 {
		t.Errorf("the scraper deleted after another restore had the revision 30: "+
			"generation %+v", g)
	}
}

// Prices that an admin has set stay after a restore, under a new number. Otherwise the backup's
// prices hold.
func TestPricesOutliveARestore(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	set := func(micros, at int64) {
		l.do(func(tx *Tx) {
			tx.AddPrices(PriceTable{Rows: price.List{{RowKey: "tier:plain", Micros: micros}},
				ChangedAt: at, ChangedBy: "root"})
		})
	}
	holds := func(name string, version uint32, micros int64) {
		t.Helper()
		if now := l.now.View().CurrentPrices(); now.Version != version ||
			now.Rows[0].Micros != micros {
			t.Errorf("%s: %+v", name, now)
		}
	}
	set(1, 0)
	backup := l.save()
	set(2, 0)
	l.restore(backup, false)
	holds("of a newer program", 1, 1)
	set(3, 7)
	set(4, 8)
	holds("set", 4, 4)
	l.restore(backup, false)
	holds("restored", 5, 4)
	if l.now.View().Prices(1).Rows[0].Micros != 1 || l.now.View().Prices(4) != nil {
		t.Error("other versions are not as the backup has them")
	}
	set(1, 9)
	l.restore(backup, false)
	holds("as they were", 1, 1)
	set(7, 10)
	set(8, 0)
	l.restore(backup, false)
	holds("set, and added to by a newer program", 9, 8)
	if now := l.now.View().CurrentPrices(); now.ChangedAt != 10 || now.ChangedBy != "root" {
		t.Errorf("who set them is forgotten: %+v", now)
	}
}

// Records at a payment provider of a lost cluster belong to the cluster that restored its backup.
func TestClustersOfRestoredBackupsAreOurs(t *testing.T) {
	of := func(id byte) *timeline {
		return &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{id}, 4, "n")}
	}
	a, b, c := of(1), of(2), of(3)
	first := a.save()
	b.restore(first, false)
	b.restore(first, false)
	c.restore(b.save(), false)
	if former := c.now.View().Cluster().Former; !slices.Equal(former, []ids.ID{{1}, {2}}) {
		t.Errorf("former clusters are %v", former)
	}
	for id, ours := range map[ids.ID]bool{{1}: true, {2}: true, {3}: true, {4}: false, {}: false} {
		if c.now.View().IsOurs(id.String()) != ours {
			t.Errorf("%s is ours: %v", id, !ours)
		}
	}
	if c.now.View().IsOurs("") {
		t.Error("what names no cluster is ours")
	}
	a.restore(b.save(), false) // the first cluster has continued
	if former := a.now.View().Cluster().Former; !slices.Equal(former, []ids.ID{{2}}) {
		t.Errorf("of its own backup it has %v", former)
	}
	for id := range byte(2 * MaxFormer) {
		other := of(100 + id)
		a.restore(other.save(), false)
	}
	if former := a.now.View().Cluster().Former; len(former) != MaxFormer ||
		former[MaxFormer-1] != (ids.ID{100 + 2*MaxFormer - 1}) {
		t.Errorf("%d are remembered: %v", len(former), former)
	}
}

// A restore does not change who is blocked.
func TestBlocksOutliveARestore(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	set := func(ref string, at int64, by string) {
		l.do(func(tx *Tx) { tx.PutCustomer(&Customer{Ref: ref, BlockedAt: at, BlockedBy: by}) })
	}
	set("ann", 0, "")
	set("bob", 7, "root")
	set("dan", 0, "")
	older := l.save()
	l.do(func(tx *Tx) {
		tx.PutCustomer(&Customer{Ref: "dan", BlockedAt: 6, BlockedBy: "root", RemovedAt: 6,
			ErasedAt: 7})
	})
	removed := l.save()
	set("ann", 8, "root")
	set("bob", 0, "")
	set("eve", 9, "root") // came after the backup, and is removed
	l.restore(older, false)
	view := l.now.View()
	if ann := view.Customer("ann"); ann.BlockedAt != 8 || ann.BlockedBy != "root" {
		t.Errorf("blocked since the backup: %+v", ann)
	}
	if bob := view.Customer("bob"); bob.Blocked() || bob.BlockedBy != "" {
		t.Errorf("unblocked since: %+v", bob)
	}
	if view.Customer("eve") != nil {
		t.Error("a customer who came since is there")
	}
	if dan := view.Customer("dan"); !dan.Removed() || !dan.Blocked() || dan.ErasedAt != 0 {
		t.Errorf("removed since the backup: %+v", dan)
	}
	l.do(func(tx *Tx) { tx.PutCustomer(&Customer{Ref: "dan"}) })
	l.restore(removed, false)
	if dan := l.now.View().Customer("dan"); !dan.Removed() || !dan.Blocked() {
		t.Errorf("removed in the backup: %+v", dan)
	}
}

// After a restore nobody is signed in, and no changed password is valid again.
func TestSucceedSignsOut(t *testing.T) {
	restored := clusterState(t, 5, 100, ids.ID{1}, 4, "n")
	today := clusterState(t, 9, 900, ids.ID{1}, 4, "n")
	put := func(s *Store, index uint64, account Account, hash byte) {
		err := s.Update(index, 1000, func(tx *Tx) error {
			tx.PutAccount(&account)
			tx.PutSession(&Session{Hash: Hash{hash}, Account: account.ID})
			tx.PutTicket(&Ticket{Hash: Hash{hash}})
			tx.PutGrant(&Grant{ID: ids.ID{hash}, Access: Hash{hash}})
			tx.PutGrantCode(&GrantCode{Hash: Hash{hash}})
			tx.PutLetter(&Letter{ID: ids.ID{hash}, Account: account.ID})
			tx.PutPasskey(&Passkey{ID: ids.ID{hash}, Credential: []byte{hash}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(restored, 6, Account{ID: ids.ID{1}, Email: "a@x.test", Password: "stolen", Admin: true}, 1)
	put(restored, 7, Account{ID: ids.ID{2}, Email: "b@x.test", Password: "same"}, 2)
	put(today, 10, Account{ID: ids.ID{1}, Email: "a@x.test", Password: "new"}, 3)
	err := today.Update(11, 1000, func(tx *Tx) error {
		tx.PutPasskey(&Passkey{ID: ids.ID{1}, Credential: []byte{1}, Count: 9})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restored.Succeed(today, Restoration{}); err != nil {
		t.Fatal(err)
	}
	view := restored.View()
	for hash := range byte(4) {
		if view.Session(Hash{hash}) != nil || view.Ticket(Hash{hash}) != nil ||
			view.Grant(ids.ID{hash}) != nil || view.GrantCode(Hash{hash}) != nil ||
			view.Letter(ids.ID{hash}) != nil {
			t.Errorf("session or grant %d is open, or a ticket, code or letter good", hash)
		}
	}
	if p := view.Passkey(ids.ID{1}); p == nil || p.Count != 9 || view.Passkey(ids.ID{2}) != nil {
		t.Errorf("the passkeys are %+v and %+v", p, view.Passkey(ids.ID{2}))
	}
	if a := view.Account(ids.ID{1}); a.Password != "new" || a.Admin {
		t.Errorf("the account is %+v", a)
	}
	if view.Account(ids.ID{2}) != nil {
		t.Error("an account is back that was removed since")
	}
	other := clusterState(t, 5, 100, ids.ID{2}, 4, "n")
	put(other, 6, Account{ID: ids.ID{2}, Email: "b@x.test", Password: "same"}, 2)
	if _, err := other.Succeed(today, Restoration{}); err != nil {
		t.Fatal(err)
	}
	if other.View().Account(ids.ID{2}) == nil {
		t.Error("an account of another cluster's backup is gone")
	}
}

// An operator's settings since the backup stay after a restore. If nothing was set, the backup's
// settings hold.
func TestSucceedKeepsSettings(t *testing.T) {
	for name, today := range map[string]*Settings{"set": {Revision: 7, BillingOff: true},
		"nothing is set": nil} {
		restored := clusterState(t, 5, 100, ids.ID{1}, 4, "n")
		old := clusterState(t, 9, 900, ids.ID{1}, 4, "n")
		put := func(s *Store, index uint64, set Settings) {
			err := s.Update(index, 1000, func(tx *Tx) error { tx.PutSettings(&set); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		want := Settings{Revision: 3, ChangedBy: "root"}
		put(restored, 6, want)
		if today != nil {
			put(old, 10, *today)
			want = *today
		}
		if _, err := restored.Succeed(old, Restoration{}); err != nil {
			t.Fatal(err)
		}
		if got := restored.View().Settings(); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Plans that a server brought at its start do not override an operator's. They are kept if the
// backup has none.
func TestSucceedKeepsPlans(t *testing.T) {
	seeded, set := []Plan{{Name: StarterPlan}}, []Plan{{Name: StarterPlan, Level: 1}}
	for name, c := range map[string]struct{ backup, today, want Settings }{
		"no plans in the backup": {Settings{}, Settings{Plans: seeded}, Settings{Plans: seeded}},
		"others in the backup, which an operator has set": {Settings{Revision: 3, Plans: set},
			Settings{Plans: seeded}, Settings{Revision: 3, Plans: set}},
		"settings in the backup, but none of plans": {Settings{Revision: 3, BillingOff: true},
			Settings{Plans: seeded}, Settings{Revision: 3, BillingOff: true, Plans: seeded}},
		"settings of today, but none of plans": {Settings{Revision: 3, Plans: set},
			Settings{Revision: 1, SignUp: true}, Settings{Revision: 1, SignUp: true, Plans: set}},
		"an operator's today": {Settings{Revision: 3, Plans: seeded},
			Settings{Revision: 4, Plans: set}, Settings{Revision: 4, Plans: set}},
	} {
		restored := clusterState(t, 5, 100, ids.ID{1}, 4, "n")
		old := clusterState(t, 9, 900, ids.ID{1}, 4, "n")
		for store, settings := range map[*Store]*Settings{restored: &c.backup, old: &c.today} {
			if err := store.Update(10, 1000, func(tx *Tx) error {
				tx.PutSettings(settings)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := restored.Succeed(old, Restoration{}); err != nil {
			t.Fatal(err)
		}
		if got := restored.View().Settings(); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

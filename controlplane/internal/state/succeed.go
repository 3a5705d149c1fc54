package state

import (
	"fmt"
	"math"
	"slices"

	"shoal.dev/shoal/pkg/ids"
)

// Restoration is what a restore needs besides the two states.
type Restoration struct {
	Generation ids.ID // a new one
	// Stored lists the runs with pages in the row store that started at the backup's state time or
	// later.
	Stored []Undone
	// ReviveKeys makes keys revoked since the backup valid again.
	ReviveKeys bool
	Actor      *Actor // who restores; nil: unknown
}

// Changes is how a restored state differs from the one that it replaces. Money is in micros.
type Changes struct {
	Undone        int // runs launched after the backup
	Reopened      int // ended runs that are open again
	KeysKept      int // keys revoked since the backup that stay revoked
	KeysRevived   int // keys revoked since the backup that are valid again
	KeysGone      int // keys made since the backup
	CustomersGone int // customers who came since the backup
	ScrapersGone  int // scrapers made since the backup
	ScrapersBack  int // scrapers changed since the backup
	// Scrapers deleted since the backup, and schedules removed since, that are there again.
	ScrapersReturned, SchedulesReturned int

	Balance       int64 // of all wallets now
	BalanceBefore int64
}

// Succeed prepares a restored state to replace the cluster's current one. It takes from the current
// state what concerns machines, not customers: the cluster's id and services, the nodes, and the
// time. It also takes over the owners of the shards, since fetchers at work hold leases by today's
// state. The newest dispatch number and the index are today's, since they never count back. It
// undoes the runs launched after the cut, and continues revisions above all earlier ones. Revoked
// keys, shares, accounts, passkeys and webhooks stay revoked. Blocks and removals of customers are
// as today. So are webhooks, subscriptions and invoices, and the operators' settings and prices.
// Nobody is signed in.
// Succeed fails if the states have different numbers of shards.
func (s *Store) Succeed(before *Store, r Restoration) (Changes, error) {
	before.mu.RLock()
	old, index, now, dispatched := before.View(), before.index, before.now, before.dispatched
	before.mu.RUnlock()
	mine := s.View()
	if mine.Cluster() == nil || old.Cluster() == nil ||
		mine.Cluster().Shards != old.Cluster().Shards {
		return Changes{}, fmt.Errorf("state: the numbers of shards differ")
	}
	s.mu.Lock()
	f := follower{Restoration: r, old: old, mine: mine, cut: s.now, cutIndex: s.index,
		descends: old.descendsFrom(mine.Cluster().generation(), s.index, index), since: index}
	if f.descends {
		f.since -= s.index
	}
	s.dispatched = max(s.dispatched, dispatched)
	index = max(s.index, index)
	s.mu.Unlock()
	err := s.Update(index, now, func(tx *Tx) error {
		f.compare()
		f.beginGeneration(tx)
		f.undo(tx)
		f.revoke(tx)
		f.block(tx)
		f.signOut(tx)
		f.unshare(tx)
		f.keepWebhooks(tx)
		f.keepContracts(tx)
		f.keepSettings(tx)
		f.keepPrices(tx)
		f.succeedWork(tx)
		for _, node := range mine.Nodes() {
			tx.RemoveNode(node)
		}
		for _, node := range old.Nodes() {
			tx.PutNode(node)
		}
		for _, shard := range old.Shards() {
			tx.PutShard(shard)
		}
		f.keepAudit(tx)
		return nil
	})
	return f.changes, err
}

// follower is one restore in progress.
type follower struct {
	Restoration
	old, mine *View // as they were
	cut       int64 // state time of the backup
	cutIndex  uint64
	descends  bool   // the old state continued from the backup: what it lacks was removed since
	since     uint64 // at least as many as the commands that the backup lacks
	changes   Changes
}

// beginGeneration begins a new generation.
func (f *follower) beginGeneration(tx *Tx) {
	old, cluster := f.old.Cluster(), *f.mine.Cluster()
	next := Generation{ID: f.Generation, Cut: f.cutIndex, CutTime: f.cut, At: tx.Now}
	if was := cluster.Generation; was != nil {
		next.Parent, next.Revisions, next.Prices = was.ID, was.Revisions, was.Prices
	}
	next.Ancestors = f.mine.Ancestry(f.cutIndex)
	if was := old.Generation; was != nil {
		next.Revisions, next.Prices = max(next.Revisions, was.Revisions),
			max(next.Prices, was.Prices)
	}
	next.Revisions = f.revisions(next.Revisions)
	if prices := f.old.CurrentPrices(); prices != nil {
		next.Prices = max(next.Prices, prices.Version)
	}
	cluster.Former = formerOf(&cluster, old)
	cluster.ID, cluster.Log, cluster.Rows, cluster.Generation = old.ID, old.Log, old.Rows, &next
	if cluster.Version < RestsSince {
		cluster.RestsFrom = tx.Now
	}
	cluster.Version = max(cluster.Version, old.Version)
	tx.PutCluster(&cluster)
}

// mostRevisions is the highest revision that a restore continues from. It leaves as many again.
const mostRevisions = math.MaxUint32 / 2

// revisions returns the greatest revision that a scraper may have had, given that of all earlier
// generations. A scraper deleted since the backup has left no trace, but each command raised its
// revision by one at most.
func (f *follower) revisions(most uint32) uint32 {
	greatest := most
	f.old.EachScraper(func(s *Scraper) bool {
		greatest = max(greatest, s.Revision)
		return true
	})
	f.mine.EachScraper(func(s *Scraper) bool {
		if f.old.member(s.ID) == nil {
			had := min(uint64(max(most, s.Revision))+f.since, mostRevisions)
			greatest = max(greatest, uint32(had))
		}
		return true
	})
	return greatest
}

// formerOf lists the former clusters of the backup's cluster and the current one, the backup's own
// cluster last.
func formerOf(backup, now *Cluster) []ids.ID {
	var former []ids.ID
	for _, id := range slices.Concat(now.Former, backup.Former, []ids.ID{backup.ID}) {
		if id != now.ID && !slices.Contains(former, id) {
			former = append(former, id)
		}
	}
	return former[max(len(former)-MaxFormer, 0):]
}

// undo marks the runs launched after the cut: runs of the old state, and those that earlier states
// left in the row store. The cut decides, so that a run which left the state by age is not undone.
func (f *follower) undo(tx *Tx) {
	note := func(u Undone) {
		if f.mine.Job(u.Job) == nil && tx.UndoneRun(u.Job) == nil {
			tx.PutUndone(&u)
			f.changes.Undone++
		}
	}
	f.old.JobsAfter(ids.ID{}, func(job *Job) bool {
		if job.Queued >= f.cut {
			note(Undone{Job: job.ID, Customer: job.Customer, Group: job.Group,
				Scraper: job.Scraper})
		}
		return true
	})
	for _, stored := range f.Stored {
		note(stored)
	}
}

// block keeps customers blocked as they are today: the backup does not know what admins have
// decided since. Removed customers stay removed, and are erased anew.
func (f *follower) block(tx *Tx) {
	f.mine.EachCustomer(func(c *Customer) bool {
		was := f.old.Customer(c.Ref)
		if was == nil || c.Removed() {
			return true
		}
		if was.Removed() || was.BlockedAt != c.BlockedAt {
			next := *c
			next.BlockedAt, next.BlockedBy = was.BlockedAt, was.BlockedBy
			next.RemovedAt = was.RemovedAt
			tx.PutCustomer(&next)
		}
		return true
	})
}

// signOut ends all sessions and grants of the backup, since some may have ended since. Accounts are
// as today, so no changed password is valid again and no disabled account can sign in. An account
// removed since stays removed.
func (f *follower) signOut(tx *Tx) {
	for _, session := range sessionsTable.all(f.mine, "id_prefix") {
		tx.RemoveSession(session)
	}
	for _, ticket := range ticketsTable.all(f.mine, "id_prefix") {
		tx.RemoveTicket(ticket) // it may have been used since
	}
	for _, grant := range grantsTable.all(f.mine, "id_prefix") {
		tx.RemoveGrant(grant) // it may have been ended since
	}
	for _, code := range grantCodesTable.all(f.mine, "id_prefix") {
		tx.RemoveGrantCode(code)
	}
	for _, letter := range lettersTable.all(f.mine, "id_prefix") {
		tx.RemoveLetter(letter) // it may have been used since
	}
	for _, passkey := range passkeysTable.all(f.mine, "id_prefix") {
		if today := f.old.Passkey(passkey.ID); today != nil {
			tx.PutPasskey(today)
		} else if f.keepRevoked(tx, passkey.ID, passkey.CreatedAt) {
			tx.RemovePasskey(passkey)
		}
	}
	for _, account := range accountsTable.all(f.mine, "id_prefix") {
		if today := f.old.Account(account.ID); today != nil {
			tx.PutAccount(today)
		} else if f.keepRevoked(tx, account.ID, account.CreatedAt) {
			tx.RemoveAccount(account)
		}
	}
}

// unshare removes shares that were revoked since the backup.
func (f *follower) unshare(tx *Tx) {
	for _, share := range sharesTable.all(f.mine, "id_prefix") {
		if f.old.Share(share.Group, share.Email) == nil &&
			f.keepRevoked(tx, share.RevokedID(), share.CreatedAt) {
			tx.RemoveShare(share)
		}
	}
}

// keepWebhooks keeps the backup's webhooks as they are today: no deleted address is called, and no
// replaced secret signs. The backup's deliveries are as today, too, so a message that arrived is
// not sent again.
func (f *follower) keepWebhooks(tx *Tx) {
	for _, hook := range webhooksTable.all(f.mine, "id_prefix") {
		today := f.old.Webhook(hook.ID)
		goes := today == nil && f.keepRevoked(tx, hook.ID, hook.CreatedAt)
		if today == nil && !goes {
			continue
		}
		var kept uint32
		for _, d := range deliveriesTable.all(f.mine, "id_prefix", hook.ID) {
			if was := f.old.Delivery(hook.ID, d.Notice.ID); was != nil {
				tx.PutDelivery(was)
				kept++
			} else {
				tx.RemoveDelivery(d)
			}
		}
		if goes {
			tx.RemoveWebhook(hook)
			continue
		}
		next := *today
		next.Deliveries = kept
		if next.Next != 0 { // else nothing is sent, whatever is pending
			next.Next = 0
			tx.DeliveriesDue(hook.ID, func(d *Delivery) bool { next.Next = d.Due; return false })
		}
		tx.PutWebhook(&next)
	}
}

// keepRevoked reports whether an id that the old state lacks was revoked after it was made, and
// then marks it. An id that the old state never knew was not, unless it is marked already.
func (f *follower) keepRevoked(tx *Tx, id ids.ID, made int64) bool {
	noted := tx.Revoked(id)
	if noted != nil && made <= noted.At {
		return true
	}
	if f.descends {
		tx.PutRevoked(&Revoked{ID: id, At: tx.Now})
	}
	return f.descends
}

// keepContracts keeps today's subscriptions and invoices. The payment provider owns them, and does
// not report them again.
func (f *follower) keepContracts(tx *Tx) {
	for _, subscription := range subscriptionsTable.all(f.old, "id_prefix") {
		if f.mine.Customer(subscription.Customer) != nil {
			tx.PutSubscription(subscription)
		}
	}
	for _, invoice := range invoicesTable.all(f.old, "id_prefix") {
		if f.mine.Customer(invoice.Customer) != nil {
			tx.PutInvoice(invoice)
		}
	}
}

// revoke takes over the revocations, and applies them to the backup's keys.
func (f *follower) revoke(tx *Tx) {
	f.old.RevokedByAge(func(r *Revoked) bool { tx.PutRevoked(r); return true })
	f.mine.EachKey(func(key *Key) bool {
		if tx.Revoked(key.ID) == nil && (!f.descends || f.old.Key(key.ID) != nil) {
			return true
		}
		if f.ReviveKeys {
			if revoked := tx.Revoked(key.ID); revoked != nil {
				tx.RemoveRevoked(revoked)
			}
			f.changes.KeysRevived++
			return true
		}
		tx.RemoveKey(key)
		if tx.Revoked(key.ID) == nil {
			tx.PutRevoked(&Revoked{ID: key.ID, At: tx.Now})
		}
		f.changes.KeysKept++
		return true
	})
}

// compare counts the differences between the two states.
func (f *follower) compare() {
	f.old.EachKey(func(key *Key) bool {
		if f.mine.Key(key.ID) == nil {
			f.changes.KeysGone++
		}
		return true
	})
	for _, customer := range f.old.Customers() {
		if f.mine.Customer(customer.Ref) == nil {
			f.changes.CustomersGone++
		}
	}
	f.old.EachScraper(func(s *Scraper) bool {
		switch kept := f.mine.member(s.ID); {
		case kept == nil:
			f.changes.ScrapersGone++
		case kept.Revision < s.Revision:
			f.changes.ScrapersBack++
		}
		return true
	})
	f.compareRemoved()
	for _, job := range f.mine.OpenJobs() {
		// a missing job has left the state since
		if was := f.old.Job(job.ID); was == nil && f.descends || was != nil && was.Closed {
			f.changes.Reopened++
		}
	}
	for _, wallet := range f.mine.Wallets() {
		f.changes.Balance += wallet.Balance()
	}
	for _, wallet := range f.old.Wallets() {
		f.changes.BalanceBefore += wallet.Balance()
	}
}

// compareRemoved counts what was removed since the backup and is there again. What belongs to
// removed customers goes again.
func (f *follower) compareRemoved() {
	if !f.descends {
		return
	}
	f.mine.EachScraper(func(s *Scraper) bool {
		if f.mine.shown(s) != nil && f.old.Scraper(s.ID) == nil &&
			!f.old.Customer(s.Customer).Removed() {
			f.changes.ScrapersReturned++
		}
		return true
	})
	f.mine.SchedulesByDue(func(s *Schedule) bool {
		if f.old.Schedule(s.Target) == nil && !f.old.Customer(s.Customer).Removed() {
			f.changes.SchedulesReturned++
		}
		return true
	})
}

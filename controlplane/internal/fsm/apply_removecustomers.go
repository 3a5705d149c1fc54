package fsm

import (
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// erasedAtOnce is about how many of a customer's records one command removes. It always removes all
// keys and schemas.
const erasedAtOnce = 500

// errRemoved refuses a command for a removed customer.
func errRemoved() error {
	return fault.New(fault.CustomerBlocked, "an admin has removed this customer for good")
}

// cascadeOfCustomer returns what a customer's removal takes along.
func cascadeOfCustomer(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	customer := tx.Customer(d.Customer)
	if customer == nil || customer.Removed() {
		return state.Cascade{}, fault.Invalid(fault.NotFound, "ref",
			"no customer has this reference")
	}
	h := xxh3.New()
	note := func(id ids.ID) { _, _ = h.Write(id[:]) } // a hash never fails
	groups, keys, schemas, scrapers := tx.Groups(d.Customer), tx.Keys(d.Customer),
		tx.Schemas(d.Customer), 0
	accounts, webhooks := tx.AccountsOf(d.Customer), tx.Webhooks(d.Customer)
	for _, group := range groups {
		note(group.ID)
		scrapers += group.Scrapers
	}
	for _, key := range keys {
		note(key.ID)
	}
	for _, schema := range schemas {
		note(schema.ID)
	}
	for _, account := range accounts {
		note(account.ID)
	}
	for _, hook := range webhooks {
		note(hook.ID)
	}
	sites := siteCounts{}
	for _, site := range tx.Sites(d.Customer) {
		note(site.Version)
		sites.add(site)
	}
	open := tx.OpenJobsOfCustomer(d.Customer)
	for _, job := range open {
		note(job.ID)
	}
	cascade := state.Cascade{Name: d.Customer, Type: "CUSTOMER", Counts: []state.Count{
		{Name: "openRuns", N: len(open)}, {Name: "rows", N: int(d.Rows)},
		{Name: "groups", N: len(groups)}, {Name: "scrapers", N: scrapers},
		{Name: "schemas", N: len(schemas)}, {Name: "keys", N: len(keys)},
		{Name: "accounts", N: len(accounts)}, {Name: "webhooks", N: len(webhooks)}},
		Digest: h.Sum64() ^ uint64(d.Rows) ^ uint64(scrapers)<<40}
	cascade.Counts = append(cascade.Counts, sites.counts()...)
	return cascade, nil
}

func removeCustomer(tx *state.Tx, p command.RemoveCustomerPayload) (command.None, error) {
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	customer := *tx.Customer(p.Deletion.Customer)
	if !customer.Blocked() {
		customer.BlockedAt, customer.BlockedBy = tx.Now, p.By
	}
	customer.RemovedAt = tx.Now
	tx.PutCustomer(&customer)
	eraseIdentity(tx, customer.Ref)
	return command.None{}, nil
}

// eraseIdentity stops a customer's runs, and removes what identifies it or gives it access. It also
// stops its webhooks and its subscription.
func eraseIdentity(tx *state.Tx, ref string) {
	for _, job := range tx.OpenJobsOfCustomer(ref) {
		if !job.State.Final() {
			endRun(tx, job, model.StoppedByCustomer)
		}
	}
	for _, account := range tx.AccountsOf(ref) {
		endGrants(tx, account.ID)
		for _, session := range tx.Sessions(account.ID) {
			tx.RemoveSession(session)
		}
		dropLetters(tx, account.Email)
		dropPasskeys(tx, account.ID)
		dropAccount(tx, account)
	}
	for _, key := range tx.Keys(ref) {
		tx.RemoveKey(key)
		noteRevoked(tx, key.ID)
	}
	for _, hook := range tx.Webhooks(ref) {
		if off := *hook; off.Off == "" || off.Next != 0 {
			off.Off, off.Next = state.WebhookStopped, 0
			tx.PutWebhook(&off)
		}
	}
	for _, schema := range tx.Schemas(ref) {
		tx.RemoveSchema(schema)
	}
	for _, preview := range tx.Previews(ref) {
		tx.RemovePreview(preview)
	}
	for _, mail := range tx.MailsOf(ref) {
		tx.RemoveMail(mail)
	}
	for _, ticket := range tx.Tickets(ref) {
		tx.RemoveTicket(ticket)
	}
	if profile := tx.Profile(ref); profile != nil {
		tx.RemoveProfile(profile)
	}
	dropFeedback(tx, ref)
	tx.RemoveLaunches(ref)
	endSubscription(tx, ref)
}

func eraseCustomer(tx *state.Tx, p command.EraseCustomerPayload) (command.None, error) {
	customer := tx.Customer(p.Customer)
	if !customer.Removed() || customer.ErasedAt != 0 {
		return command.None{}, nil
	}
	eraseIdentity(tx, p.Customer) // a restore may have brought it back
	eraseSome(tx, p.Customer)
	dropEntries(tx, p.Customer, 0)
	dropRuns(tx, p.Customer, 0)
	open := len(tx.OpenJobsOfCustomer(p.Customer)) > 0
	if daily := tx.Daily(p.Customer); daily != nil && !open {
		tx.RemoveDaily(daily)
	}
	if p.Rows && !open && !tx.Leaves(p.Customer) && !waitsForRows(tx, p.Customer) {
		wallet := *tx.Wallet(p.Customer)
		wallet.Threshold = 0
		tx.PutWallet(&wallet)
		erased := *tx.Customer(p.Customer)
		erased.ErasedAt = tx.Now
		tx.PutCustomer(&erased)
	}
	return command.None{}, nil
}

// waitsForRows reports whether other background work must first remove rows of the customer.
func waitsForRows(tx *state.Tx, ref string) bool {
	return len(tx.DeletedGroupsOf(ref)) > 0 || len(tx.RemovalsOf(ref)) > 0 ||
		len(tx.HarvestsFor(ref)) > 0 || len(tx.Imports(ref)) > 0
}

// eraseSome removes about erasedAtOnce of a customer's numerous records. Scrapers are removed with
// their deleted group, and uploads on their own, since their runs are sealed first.
func eraseSome(tx *state.Tx, ref string) {
	room := erasedAtOnce
	for _, group := range firstOf(tx.Groups(ref), &room) {
		removeCategories(tx, group.ID)
		removeShares(tx, group.ID)
		tx.RemoveGroup(group)
		tx.PutDeletedGroup(&state.DeletedGroup{Group: group.ID, Customer: group.Customer,
			Rows: true, At: tx.Now})
	}
	for _, hook := range tx.Webhooks(ref) {
		var log []*state.Delivery
		tx.Deliveries(hook.ID, func(d *state.Delivery) bool {
			log = append(log, d)
			return len(log) <= room
		})
		whole := len(log) <= room
		for _, delivery := range firstOf(log, &room) {
			tx.RemoveDelivery(delivery)
		}
		if whole {
			tx.RemoveWebhook(hook)
			noteRevoked(tx, hook.ID)
		}
	}
	for _, e := range firstOf(tx.Exports(ref), &room) {
		removeExport(tx, e)
	}
	for _, site := range firstOf(tx.Sites(ref), &room) {
		tx.RemoveSite(site)
	}
	for _, item := range firstOf(tx.WorkFor(ref), &room) {
		tx.RemoveWork(item)
	}
	for _, run := range firstOf(tx.HeldRunsOf(ref), &room) {
		tx.RemoveHeldRun(run)
	}
	for _, run := range firstOf(tx.DeletedRunsOf(ref), &room) {
		tx.RemoveDeletedRun(run)
	}
	var claims []*state.Claim
	tx.EachClaimOf(ref, func(c *state.Claim) bool {
		claims = append(claims, c)
		return len(claims) < room
	})
	for _, claim := range firstOf(claims, &room) {
		dropClaim(tx, claim)
	}
	var notices []*state.Notice
	tx.Notices(ref, func(n *state.Notice) bool {
		notices = append(notices, n)
		return len(notices) <= room
	})
	if len(notices) <= room {
		tx.RemoveInbox(ref)
	}
	for _, notice := range firstOf(notices, &room) {
		tx.RemoveNotice(notice)
	}
}

// firstOf returns the records that still have room, and uses the room up.
func firstOf[R any](records []*R, room *int) []*R {
	records = records[:min(len(records), *room)]
	*room -= len(records)
	return records
}

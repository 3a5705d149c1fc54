package fsm

import (
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// What one command removes at most of a customer.
const (
	groupsAtOnce  = 50
	noticesAtOnce = 500
)

// cascadeOfCustomer is what the removal of a customer reaches.
func cascadeOfCustomer(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	customer := tx.Customer(d.Customer)
	if customer == nil || customer.Removed() {
		return state.Cascade{}, fault.Invalid(fault.NotFound, "ref",
			"no customer has this reference")
	}
	h := xxh3.New()
	note := func(id ids.ID) { _, _ = h.Write(id[:]) } // a hash takes everything
	groups, keys, schemas, scrapers := tx.Groups(d.Customer), tx.Keys(d.Customer),
		tx.Schemas(d.Customer), 0
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
	open := tx.OpenJobsOfCustomer(d.Customer)
	for _, job := range open {
		note(job.ID)
	}
	return state.Cascade{Name: d.Customer, Type: "CUSTOMER", Counts: []state.Count{
		{Name: "openRuns", N: len(open)}, {Name: "rows", N: int(d.Rows)},
		{Name: "groups", N: len(groups)}, {Name: "scrapers", N: scrapers},
		{Name: "schemas", N: len(schemas)}, {Name: "keys", N: len(keys)}},
		Digest: h.Sum64() ^ uint64(d.Rows) ^ uint64(scrapers)<<40}, nil
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

// eraseIdentity stops a customer's runs, and removes what says who it is or lets it in.
func eraseIdentity(tx *state.Tx, ref string) {
	for _, job := range tx.OpenJobsOfCustomer(ref) {
		if !job.State.Final() {
			endRun(tx, job, model.StoppedByCustomer)
		}
	}
	for _, key := range tx.Keys(ref) {
		tx.RemoveKey(key)
		tx.PutRevoked(&state.Revoked{Key: key.ID, At: tx.Now})
	}
	for _, schema := range tx.Schemas(ref) {
		tx.RemoveSchema(schema)
	}
	for _, preview := range tx.Previews(ref) {
		tx.RemovePreview(preview)
	}
	if profile := tx.Profile(ref); profile != nil {
		tx.RemoveProfile(profile)
	}
	if daily := tx.Daily(ref); daily != nil {
		tx.RemoveDaily(daily)
	}
	tx.RemoveLaunches(ref)
}

func eraseCustomer(tx *state.Tx, p command.EraseCustomerPayload) (command.None, error) {
	customer := tx.Customer(p.Customer)
	if !customer.Removed() || customer.ErasedAt != 0 {
		return command.None{}, nil
	}
	eraseIdentity(tx, p.Customer) // which a restore may have brought back
	groups := tx.Groups(p.Customer)
	for _, group := range groups[:min(len(groups), groupsAtOnce)] {
		tx.RemoveGroup(group)
		tx.PutDeletedGroup(&state.DeletedGroup{Group: group.ID, Customer: group.Customer,
			Rows: true, At: tx.Now})
	}
	for _, mail := range tx.MailsOf(p.Customer) {
		tx.RemoveMail(mail)
	}
	var notices []*state.Notice
	tx.Notices(p.Customer, func(n *state.Notice) bool {
		notices = append(notices, n)
		return len(notices) < noticesAtOnce
	})
	for _, notice := range notices {
		tx.RemoveNotice(notice)
	}
	if p.Rows && !tx.Leaves(p.Customer) && len(tx.DeletedGroupsOf(p.Customer)) == 0 {
		tx.RemoveInbox(p.Customer)
		erased := *tx.Customer(p.Customer)
		erased.ErasedAt = tx.Now
		tx.PutCustomer(&erased)
	}
	return command.None{}, nil
}

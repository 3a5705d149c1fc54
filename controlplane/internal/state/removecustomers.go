package state

// Removed reports whether the customer was removed. Its record stays for its ledger and history.
func (c *Customer) Removed() bool { return c != nil && c.RemovedAt != 0 }

// CustomersRemoving visits the removed customers that are not erased yet, until visit returns
// false.
func (v *View) CustomersRemoving(visit func(*Customer) bool) {
	customersTable.each(v, false, visit, "removing_prefix")
}

// Leaves reports whether the state still has anything of a customer that commands remove at once.
// That leaves out runs that are not closed, and everything with rows.
func (v *View) Leaves(customer string) bool {
	left := v.Profile(customer) != nil || len(v.Groups(customer)) > 0 ||
		len(v.Keys(customer)) > 0 || len(v.AccountsOf(customer)) > 0 ||
		len(v.Webhooks(customer)) > 0 || len(v.Schemas(customer)) > 0 ||
		len(v.Previews(customer)) > 0 || len(v.MailsOf(customer)) > 0 ||
		len(v.WorkFor(customer)) > 0 || len(v.Exports(customer)) > 0 ||
		len(v.Sites(customer)) > 0 || len(v.FeedbackOf(customer)) > 0 ||
		len(v.HeldRunsOf(customer)) > 0 ||
		len(v.DeletedRunsOf(customer)) > 0 ||
		inboxesTable.first(v, "id", customer) != nil ||
		launchesTable.first(v, "id", customer) != nil ||
		v.Daily(customer) != nil && len(v.OpenJobsOfCustomer(customer)) == 0
	v.Notices(customer, func(*Notice) bool { left = true; return false })
	v.EachClaimOf(customer, func(*Claim) bool { left = true; return false })
	return left
}

// MailsOf lists a customer's e-mails.
func (v *View) MailsOf(customer string) []*Mail {
	return mailsTable.all(v, "of_prefix", customer)
}

// WorkFor lists a customer's items of background work.
func (v *View) WorkFor(customer string) []*Work {
	return workTable.all(v, "customer_prefix", customer)
}

// EachClaimOf visits a customer's idempotency records, until visit returns false.
func (v *View) EachClaimOf(customer string, visit func(*Claim) bool) {
	claimsTable.each(v, false, visit, "id_prefix", customer)
}

// RemoveProfile removes a profile.
func (t *Tx) RemoveProfile(p *Profile) { profilesTable.remove(t, p) }

// RemoveInbox removes a customer's inbox.
func (t *Tx) RemoveInbox(customer string) {
	if inbox := inboxesTable.first(&t.View, "id", customer); inbox != nil {
		inboxesTable.remove(t, inbox)
	}
}

// RemoveLaunches removes the count of a customer's launches.
func (t *Tx) RemoveLaunches(customer string) {
	if launches := launchesTable.first(&t.View, "id", customer); launches != nil {
		launchesTable.remove(t, launches)
	}
}

package state

// Removed says whether the customer was removed. It stays for its ledger and history.
func (c *Customer) Removed() bool { return c != nil && c.RemovedAt != 0 }

// CustomersRemoving visits the customers of which something is left that should go, until visit
// returns false.
func (v *View) CustomersRemoving(visit func(*Customer) bool) {
	customersTable.each(v, false, visit, "removing_prefix")
}

// Leaves says whether the state has something left of a customer that should go.
func (v *View) Leaves(customer string) bool {
	left := len(v.Groups(customer)) > 0 || len(v.MailsOf(customer)) > 0
	v.Notices(customer, func(*Notice) bool { left = true; return false })
	return left
}

// MailsOf lists a customer's e-mails.
func (v *View) MailsOf(customer string) []*Mail {
	return mailsTable.all(v, "of_prefix", customer)
}

// RemoveProfile removes.
func (t *Tx) RemoveProfile(p *Profile) { profilesTable.remove(t, p) }

// RemoveInbox removes a customer's.
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

// Package work does background work. One replicated table lists the open items. Nodes claim items
// under a lease, take them from step to step, resume what others left, and report. What a kind of
// work does is up to its role, and the control plane decides what is in the table.
package work

// The kinds of work. Each belongs to one role, and only that role's nodes do it.
const (
	Backup    = "backup"    // saves the state in the blob store
	Blobs     = "blobs"     // counts the blob store, and removes what expired there
	Catalogue = "catalogue" // looks through an uploaded catalogue of products
	Changes   = "changes"   // compares runs with earlier ones, to report changes
	// Contracts ends subscriptions and checkouts at the payment provider.
	Contracts = "contracts"
	Email     = "email"   // sends notices to customers by e-mail
	Erase     = "erase"   // removes what the state holds of removed customers
	Export    = "export"  // writes rows to files that are kept
	Expire    = "expire"  // removes rows that are too old
	Harvest   = "harvest" // reads sitemaps of scrapers' sites
	Import    = "import"  // stores rows of uploaded files
	Launch    = "launch"  // launches runs that are due
	// LinkStates notes on the links of sites what runs made of them.
	LinkStates = "linkstates"
	Match      = "match"   // finds a group's rows' products in the catalogue
	Merge      = "merge"   // merges rows of runs by their titles
	Orphans    = "orphans" // removes link lists that nothing refers to
	Recount    = "recount" // checks the ledger against the page records
	// ReExtract extracts again from the kept bodies of a run.
	ReExtract = "reextract"
	Remove    = "remove" // removes rows of what was deleted
	Retain    = "retain" // removes rows of runs that newer ones replace
	// Webhooks sends notices to customers' webhooks.
	Webhooks = "webhooks"
	Wipe     = "wipe" // removes what harvests found, nightly or once a newer one has it
)

// Role returns the role whose nodes do a kind of work, "" for an unknown kind.
func Role(kind string) string {
	switch kind {
	case Changes, Contracts, Email, Export, Harvest, Launch, Webhooks:
		return "apiserver"
	case Catalogue, Erase, Expire, Import, LinkStates, Match, Merge, ReExtract, Remove, Retain,
		Wipe:
		return "ingest"
	case Backup, Blobs, Orphans:
		return "controlplane"
	case Recount:
		return "billing"
	}
	return ""
}

// destroys says whether a kind removes for good what the state says may go. After a restore the
// state may be the wrong one, so the kind waits for a while. Orphans keeps back by itself what a
// restore may want, and Erase removes of the state alone.
func destroys(kind string) bool {
	switch kind {
	case Expire, Remove, Retain, Wipe:
		return true
	}
	return false
}

// Kinds returns all kinds, by name.
func Kinds() []string {
	return []string{Backup, Blobs, Catalogue, Changes, Contracts, Email, Erase, Expire, Export,
		Harvest, Import, Launch, LinkStates, Match, Merge, Orphans, Recount, ReExtract, Remove,
		Retain, Webhooks, Wipe}
}

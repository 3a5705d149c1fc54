// Package work owns how background work is done. What is open stands in one replicated table. Nodes
// claim items from it under a lease, take them from step to step, resume what others left, and
// report. What a kind of work does is its role's, and what is in the table the control plane's to
// decide.
package work

// The kinds of work. Each belongs to one role, whose nodes alone do it.
const (
	Backup    = "backup"    // the state is saved in the blob store
	Blobs     = "blobs"     // the blob store is counted, and what expired there goes
	Catalogue = "catalogue" // an uploaded catalogue of products is looked through
	Changes   = "changes"   // runs are compared with those before them, to tell what changed
	// Contracts ends, at the payment provider, subscriptions and checkouts that are to end.
	Contracts = "contracts"
	Email     = "email"   // what customers are told is sent by e-mail
	Erase     = "erase"   // what the state has of removed customers goes
	Export    = "export"  // rows are written to files that are kept
	Expire    = "expire"  // rows that are older than they may be go
	Harvest   = "harvest" // sitemaps of scrapers' sites are read
	Import    = "import"  // rows of uploaded files are stored
	Launch    = "launch"  // runs that are due are launched
	// LinkStates has the links of sites know what runs made of them.
	LinkStates = "linkstates"
	Match      = "match"   // rows of a group look for their products in the catalogue
	Merge      = "merge"   // rows of runs are merged by their titles
	Orphans    = "orphans" // link lists that nothing names go
	Recount    = "recount" // the ledger is held against the page records
	// ReExtract reads kept bodies of a run anew.
	ReExtract = "reextract"
	Remove    = "remove" // rows of what was deleted go
	Retain    = "retain" // rows of runs that newer ones replace go
	// Webhooks calls customers that want to be told of events by requests.
	Webhooks = "webhooks"
	Wipe     = "wipe" // what harvests found goes, each night or when a newer one has it
)

// Role is the role whose nodes do a kind of work, "" of a kind that there is not.
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

// Kinds are all kinds, by name.
func Kinds() []string {
	return []string{Backup, Blobs, Catalogue, Changes, Contracts, Email, Erase, Expire, Export,
		Harvest, Import, Launch, LinkStates, Match, Merge, Orphans, Recount, ReExtract, Remove,
		Retain, Webhooks, Wipe}
}

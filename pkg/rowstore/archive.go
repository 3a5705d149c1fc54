package rowstore

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// MaxPast is how many runs or entries one call of an Archive takes or returns.
const MaxPast = 10_000

// Archive keeps what has left the control plane's state: runs that are closed and ledger entries
// that are sealed. Nothing of them changes any more. What they say beyond the members named here is
// the control plane's to encode.
//
// Every record names the generation of the state in which it was sealed, and its index there. A
// restore goes back to an index of an older generation. What was sealed behind that index is no
// part of the new one. So a read names the Path that it takes. A record is written under the same
// id and generation by whoever writes it, and twice is once.
type Archive interface {
	// PutPast stores runs and entries, at most MaxPast of each. It is durable when it returns.
	// Idempotent: a record that is there stays.
	PutPast(ctx context.Context, runs []PastRun, entries []PastEntry) error
	// PastRuns returns the runs that a query wants, in its order.
	PastRuns(ctx context.Context, q PastQuery) ([]PastRecord, error)
	// CountPast counts a customer's runs that were queued in a span, without trials, by what they
	// may be filtered by.
	CountPast(ctx context.Context, path Path, customer string, queued PastSpan) ([]PastCount,
		error)
	// PastEntries returns the entries that a query wants, the newest first.
	PastEntries(ctx context.Context, q PastEntriesQuery) ([]PastEntry, error)
	// PutAudit stores entries of the audit trail, at most MaxPast. It is durable when it returns.
	// Idempotent: an entry that is there stays. Another one under the same number is stored beside
	// it, so that who verifies the trail sees both.
	PutAudit(ctx context.Context, entries []AuditRecord) error
	// Audit returns the entries of the audit trail that a query wants, by their numbers.
	Audit(ctx context.Context, q AuditQuery) ([]AuditRecord, error)
	// AuditHead is the greatest number of an entry of the audit trail on a path; 0: there is none.
	AuditHead(ctx context.Context, path Path) (uint64, error)
	// PastHead is the greatest index under which the archive has anything on a path; 0: it has
	// nothing there.
	PastHead(ctx context.Context, path Path) (uint64, error)
	// ExpirePast removes the runs that finished before a time, the sums that were noted before it,
	// and no entry. Idempotent; to be called again after an error.
	ExpirePast(ctx context.Context, before time.Time) error
}

// Path is the way from a state back to the first of its cluster: what a read sees. Empty: nothing.
type Path []PathStep

// PathStep says that what a generation sealed counts, up to an index.
type PathStep struct {
	Generation ids.ID
	Upto       uint64
}

// PastRun is a closed run. Times are Unix milliseconds, Charged is in micros.
type PastRun struct {
	ID         ids.ID
	Generation ids.ID
	Sealed     uint64 // index of the command that closed it
	Customer   string
	Trial      bool // a sample or preview, which is in no history
	PastKind
	List                      ids.ID
	Queued, Started, Finished int64
	Links, Success, Errors    uint32
	Items, Pages, Delivered   uint64
	Charged                   int64
	Body                      []byte
}

// PastRecord is a closed run as it is read: its body says all of it.
type PastRecord struct {
	ID   ids.ID
	Body []byte
}

// PastKind is what runs are filtered by.
type PastKind struct {
	Group, Scraper ids.ID
	State          string
}

// PastSpan is Unix milliseconds from the first on, and before the other; 0: without that end.
type PastSpan struct{ From, To int64 }

// Has says whether a time is within.
func (s PastSpan) Has(at int64) bool { return at >= s.From && (s.To == 0 || at < s.To) }

// PastCount is a number of runs.
type PastCount struct {
	PastKind
	Runs int64
}

// PastEntry is a sealed ledger entry.
type PastEntry struct {
	ID         ids.ID
	Generation ids.ID
	Sealed     uint64 // index of the command that sealed it
	Customer   string
	Created    uint64 // index of the command that made it: the order of the ledger
	Body       []byte
}

// AuditRecord is an entry of the audit trail, which is never changed and never removed.
type AuditRecord struct {
	Generation ids.ID
	Number     uint64
	Hash       [32]byte // SHA-256 of Body, which names the hash of the entry before
	Sealed     uint64   // index of the command that made it
	At         int64    // Unix milliseconds
	Actor      string
	Customer   string
	Body       []byte
}

// AuditQuery wants entries that meet everything it names, and of each number all there are.
type AuditQuery struct {
	Path     Path
	Actor    string // "": any
	Customer string // "": any
	// From and To are Unix milliseconds; 0: any. What was made at To is not wanted.
	From, To int64
	// Beyond leaves out what does not come behind a number in the order; 0: begin with the first.
	Beyond     uint64
	Descending bool
	Limit      int // 1 to MaxPast
}

// PastOrder is what runs are sorted by; runs that are equal in it are sorted by id.
type PastOrder string

// The orders of runs. SealOrder is that in which they were closed.
const (
	ByQueued    PastOrder = "queued"
	ByStarted   PastOrder = "started"
	ByFinished  PastOrder = "finished"
	ByState     PastOrder = "state"
	BySuccess   PastOrder = "success"
	ByErrors    PastOrder = "errors"
	ByLinks     PastOrder = "links"
	ByItems     PastOrder = "items"
	ByPages     PastOrder = "pages"
	ByDelivered PastOrder = "delivered"
	ByCharged   PastOrder = "charged"
	ByDuration  PastOrder = "finished - started"
	BySealed    PastOrder = "sealed"
)

// PastQuery wants runs that meet everything it names.
type PastQuery struct {
	Path     Path
	Customer string     // "": any
	IDs      []ids.ID   // nil: any
	Without  []ids.ID   // none of these
	Lists    []ids.ID   // of these lists; nil: any
	Scraper  ids.ID     // zero: any
	Kinds    []PastKind // nil: any
	Queued   PastSpan   // when they were queued
	Trials   bool       // trials, too
	// Behind leaves out what does not come behind a place of the order; nil: begin with the first.
	// It goes with ByQueued and BySealed.
	Behind     *PastPlace
	By         PastOrder
	Descending bool
	Offset     int
	Limit      int // 1 to MaxPast
}

// PastPlace is a run in an order, or an entry in that of their making: its value there, and its id.
type PastPlace struct {
	Value int64
	ID    ids.ID
}

// PastEntriesQuery wants entries that meet everything it names.
type PastEntriesQuery struct {
	Path      Path
	Customers []string // whose, several only with IDs; nil: anybody's, with IDs
	IDs       []ids.ID // nil: any
	// Before leaves out what does not come before a place of the order; nil: begin with the newest.
	// One command makes many entries of a customer where it launches many runs.
	Before *PastPlace
	Offset int
	Limit  int // 1 to MaxPast
}

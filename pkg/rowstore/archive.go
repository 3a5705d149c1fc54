package rowstore

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// MaxPast is the most runs, or entries, that one call of an Archive takes or returns.
const MaxPast = 10_000

// Archive keeps what has left the control plane's state: closed runs and sealed ledger entries.
// They never change again. Beyond the fields named here, their contents are the control plane's to
// encode.
//
// Every record names the generation of the state in which it was sealed, and its index there. A
// restore goes back to an index of an older generation. What was sealed after that index is not
// part of the new one. So a read names the Path that it follows. Every writer gives a record the
// same id and generation, so writing it twice stores it once.
type Archive interface {
	// PutPast stores runs and entries, at most MaxPast of each. They are durable when it returns.
	// Idempotent: an existing record stays as it is.
	PutPast(ctx context.Context, runs []PastRun, entries []PastEntry) error
	// PastRuns returns the runs that match a query, in its order.
	PastRuns(ctx context.Context, q PastQuery) ([]PastRecord, error)
	// CountPast counts a customer's runs that were queued in a span, per PastKind. It leaves out
	// trials.
	CountPast(ctx context.Context, path Path, customer string, queued PastSpan) ([]PastCount,
		error)
	// PastEntries returns the entries that match a query, newest first.
	PastEntries(ctx context.Context, q PastEntriesQuery) ([]PastEntry, error)
	// PutAudit stores entries of the audit trail, at most MaxPast. They are durable when it
	// returns. Idempotent: an existing entry stays. A different entry under the same number is
	// stored beside it, so that verifying the trail finds both.
	PutAudit(ctx context.Context, entries []AuditRecord) error
	// Audit returns the entries of the audit trail that match a query, by number.
	Audit(ctx context.Context, q AuditQuery) ([]AuditRecord, error)
	// AuditHead returns the greatest number of an audit entry on a path; 0: there is none.
	AuditHead(ctx context.Context, path Path) (uint64, error)
	// PastHead returns the greatest index under which the archive holds anything on a path; 0: it
	// holds nothing there.
	PastHead(ctx context.Context, path Path) (uint64, error)
	// ExpirePast removes the runs that finished before a time and the sums noted before it. It
	// removes no entries. Idempotent; call it again after an error.
	ExpirePast(ctx context.Context, before time.Time) error
}

// Path lists the generations that a state descends from: a read sees these. Empty: nothing.
type Path []PathStep

// PathStep includes what a generation sealed, up to an index.
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

// PastRecord is a closed run as it is read: Body holds all of it.
type PastRecord struct {
	ID   ids.ID
	Body []byte
}

// PastKind holds the fields that runs are filtered by.
type PastKind struct {
	Group, Scraper ids.ID
	State          string
}

// PastSpan is a range of Unix milliseconds, From inclusive, To exclusive; 0: no bound.
type PastSpan struct{ From, To int64 }

// Has reports whether a time is within the span.
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

// AuditQuery selects the entries that meet every condition, including all that share a number.
type AuditQuery struct {
	Path     Path
	Actor    string // "": any
	Customer string // "": any
	// From and To are Unix milliseconds, To exclusive; 0: any.
	From, To int64
	// Beyond skips entries up to and including this number in the order; 0: none.
	Beyond     uint64
	Descending bool
	Limit      int // 1 to MaxPast
}

// PastOrder is what runs are sorted by; equal runs are sorted by id.
type PastOrder string

// The orders of runs. BySealed is the order in which they were closed.
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

// PastQuery selects the runs that meet every condition.
type PastQuery struct {
	Path     Path
	Customer string     // "": any
	IDs      []ids.ID   // nil: any
	Without  []ids.ID   // none of these
	Lists    []ids.ID   // of these lists; nil: any
	Scraper  ids.ID     // zero: any
	Group    ids.ID     // zero: any
	Kinds    []PastKind // nil: any
	Queued   PastSpan   // when they were queued
	Trials   bool       // include trials
	// Behind skips runs up to and including this place in the order; nil: none. Only ByQueued and
	// BySealed support it.
	Behind     *PastPlace
	By         PastOrder
	Descending bool
	Offset     int
	Limit      int // 1 to MaxPast
}

// PastPlace is the place of a run in its order, or of an entry in the order of creation.
type PastPlace struct {
	Value int64
	ID    ids.ID
}

// PastEntriesQuery selects the entries that meet every condition.
type PastEntriesQuery struct {
	Path      Path
	Customers []string // nil: anybody's; nil or several need IDs
	IDs       []ids.ID // nil: any
	// Before keeps only entries before this place in the order of creation; nil: all. The place
	// needs an id: one command that launches many runs creates many entries of a customer.
	Before *PastPlace
	Offset int
	Limit  int // 1 to MaxPast
}

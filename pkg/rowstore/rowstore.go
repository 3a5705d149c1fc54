// Package rowstore owns the durable data outside the control plane. That is rows, page records,
// link lists, sites, link errors, and the runs and ledger entries that are history. It has one
// interface, one implementation per engine and one conformance suite (rowstoretest). The control
// plane decides which jobs a customer may see and which run is the latest. A Scope or a Path
// carries its answer.
//
// # Schemas
//
// During an upgrade, and after a rollback, programs of two releases share one schema, which the
// first new one migrates. So a release has at most one migration per engine, and a program works
// with the schema of the next release. That holds because
//
//   - a migration only expands: it adds a table, an index, or a column whose default says what
//     programs without it mean;
//   - programs name the columns that they read and write;
//   - a table, column or index goes one release after its last reader went.
//
// The first release to look ahead is that of cluster version 2; earlier ones refuse any schema that
// they do not know. So its schema change waits until the cluster has that version: Advance runs
// ClickHouse's third migration, unless the database is new. SQLite has no such migration. The
// archive is created outside the schema versions; programs work where it does not exist yet.
package rowstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// ErrListUnknown is the answer for a link list that does not exist or was never finished.
var ErrListUnknown = errors.New("rowstore: no such link list")

// ErrRefused is wrapped by the error of PutPages for a page that Check rejects: it will never be
// stored.
var ErrRefused = errors.New("rowstore: the page is out of bounds")

// Bounds of a page, in every store.
const (
	MaxSeq      = math.MaxInt32
	MaxPageRows = 1_000_000
)

// SchemasAhead is how many schema versions beyond the known ones a program works with: those of one
// release.
const SchemasAhead = 1

// Store is a row store. Implementations are safe for concurrent use; writes are durable when they
// return.
type Store interface {
	Lists
	Pages
	Reads
	Archive
	Retention
	Sitemaps
	Sites
	// Identity returns the store's name: two stores are the same if and only if their names are
	// equal. "": it has none.
	Identity(ctx context.Context) (string, error)
	// Claim makes owner the store's owner unless it has another one already, and returns its owner.
	// With take, owner replaces any other. An embedded store belongs to any owner that asks.
	Claim(ctx context.Context, owner string, take bool) (whose string, err error)
	// Advance brings the schema to its newest version, which programs of cluster version 1 refuse.
	// Call it once the cluster has none left, with the right to create tables. Idempotent.
	Advance(ctx context.Context) error
	// Free returns how many bytes the store's disk has left, where that is known.
	Free(ctx context.Context) (bytes uint64, known bool, err error)
	// Close waits for writes under way and releases the engine.
	Close() error
}

// Copied is a store without backups of its own, because it belongs to one process.
type Copied interface {
	// Copy writes the whole store, as it was at one moment of the call. Writes go on meanwhile, and
	// the space that they free is free once the call has ended. One copy is written at a time.
	Copy(ctx context.Context, to io.Writer) error
	// Size returns about how many bytes Copy writes.
	Size(ctx context.Context) (int64, error)
}

// Link is one entry of a link list.
type Link struct {
	Seq uint32
	URL string
}

// ListInfo describes a stored list. If Finished is false, its intake is under way or has died, and
// the list is an orphan.
type ListInfo struct {
	ID       ids.ID
	Count    uint32
	Finished bool
}

// Lists keeps the immutable link lists of runs.
type Lists interface {
	// CreateList starts a list. Its id must be new.
	CreateList(ctx context.Context, list ids.ID) (ListWriter, error)
	// Links returns at most most links with seq >= from, ascending. Past the end it returns none.
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]Link, error)
	// LinksAt returns the links with the given seqs (ascending), at most 100,000.
	LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]Link, error)
	// AllLists returns every list, for the removal of orphans.
	AllLists(ctx context.Context) ([]ListInfo, error)
	// DropList removes a list, finished or not. Idempotent.
	DropList(ctx context.Context, list ids.ID) error
}

// ListWriter takes in one list. Its writes alternate with the store's other writes, a chunk at a
// time.
type ListWriter interface {
	// Add appends an address unless the list has its canonical form already; added says which.
	// Memory: at most 24 bytes per address of the list, however long.
	Add(ctx context.Context, url, canonical string) (added bool, err error)
	// Finish makes the list durable and readable and returns its length. Nothing can be added after
	// it.
	Finish(ctx context.Context) (uint32, error)
	// Abort removes what was added. A no-op after Finish.
	Abort(ctx context.Context) error
}

// Job names the owner of a page's rows. Started (Unix microseconds) decides when they expire.
type Job struct {
	ID       ids.ID
	Customer string
	Group    ids.ID
	Scraper  ids.ID
	Started  int64
}

// PageWrite is a fetched page of a job, to be stored. Rows are complete documents, including the
// `_` keys.
type PageWrite struct {
	Job  Job
	Page *model.Page
}

// Check reports whether every store takes the page. Callers of PutPages check first, so that one
// page does not fail its batch.
func (w PageWrite) Check() error {
	switch p := w.Page; {
	case p.Unit.Seq > MaxSeq:
		return fmt.Errorf("%w: seq %d of job %s is beyond %d", ErrRefused, p.Unit.Seq, w.Job.ID,
			MaxSeq)
	case len(p.Rows) > MaxPageRows:
		return fmt.Errorf("%w: unit %v of job %s has %d rows, more than %d", ErrRefused, p.Unit,
			w.Job.ID, len(p.Rows), MaxPageRows)
	}
	return nil
}

// Pages stores fetched pages. No later record replaces a unit's first complete one.
type Pages interface {
	// PutPages stores each page's rows and page record, all in one transaction. It returns the
	// receipts of the records that stand, in the order of pages. A unit that has a record keeps it:
	// nothing is written and its receipt is returned again. A page becomes a Duplicate when another
	// unit of the job was delivered under its URLHash (unless 0). Its record then has that outcome
	// and Last, and no rows. A page of a sealed job is dropped: nil. So is a page without a record
	// behind the Last of its seq. It would never be settled, and could make Duplicates of a live
	// chain's pages. A Cancelled page has no record: its receipt is itself. If Check rejects a
	// page, the call stores nothing and returns ErrRefused. Any other page is stored, whatever its
	// texts and rows hold.
	PutPages(ctx context.Context, pages []PageWrite) ([]*model.Receipt, error)
	// Records returns the receipts of those units that have records, ascending. units is ascending,
	// at most 4,096.
	Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt, error)
	// Seal closes a job for good. From now on PutPages drops its pages, and every record for which
	// settled is false is removed with its rows. settled is called in the order of units; last says
	// whether the record is its chain's last. A nil settled keeps all. Atomic, idempotent; an
	// unknown job is sealed too.
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	// Sealed reports whether a job is sealed.
	Sealed(ctx context.Context, job ids.ID) (bool, error)
	// DeleteJob removes a job's rows. With records, it also removes its page records and what
	// Retention keeps of them. Idempotent.
	DeleteJob(ctx context.Context, job ids.ID, records bool) error
	// JobsSince calls visit for every job with put pages that started at a time (Unix microseconds)
	// or later. The calls come in no order, until visit fails.
	JobsSince(ctx context.Context, started int64, visit func(Job) error) error
	// Recount sums up the page records of a job: what the ledger must say. For a condensed job it
	// returns the noted sum.
	Recount(ctx context.Context, job ids.ID) (Recount, error)
	// EachRecord calls visit for every page record of a job in the order of units.
	EachRecord(ctx context.Context, job ids.ID, visit func(Record) error) error
}

// Recount is the sum over a job's page records.
type Recount struct {
	Delivered uint64            // records with outcome Delivered
	Errored   uint64            // records with outcome Errored
	Items     uint64            // rows of delivered pages
	Quantity  map[string]uint64 // delivered quantity by price row
}

// Record is a page record as it is stored.
type Record struct {
	Unit     model.Unit
	Fetch    ids.ID
	Outcome  model.Outcome
	Code     string
	Detail   string
	Status   uint16
	URL      string
	PriceRow string
	Quantity uint32
	Items    uint32
	Last     bool
	At       int64 // Unix microseconds
	// As in model.Page.
	Final         string
	Tries         []model.Try
	Bytes, Millis uint32
	BodyHash      []byte
	Kept          *model.KeptBody
	Sums          []byte
}

// Scope selects the rows to read: those of Group, and of Scraper unless it is zero. If Jobs is not
// nil, only rows of these jobs count (an empty Jobs reads nothing). Rows never count if their job
// is in Without or started before Since (Unix microseconds), or their scraper is in Gone.
type Scope struct {
	Group   ids.ID
	Scraper ids.ID
	Jobs    []ids.ID
	Without []ids.ID
	Gone    []ids.ID
	Since   int64
}

// Sort orders by a field of the document. In either direction, numbers and text that is a number
// (filter.ParseNumber) come before other text. Then come booleans (false, true), arrays and objects
// (all equal), and rows without the field or with null.
type Sort struct {
	Field      string
	Descending bool
}

// RowsQuery reads a page of rows by number.
type RowsQuery struct {
	Scope  Scope
	Filter filter.Node // nil: all
	// nil: newest scraped first; ties, also at the end of every Sort, go by the row's place
	Sort   []Sort
	Offset int
	Limit  int // 1 to 1,000
	// the row at which the documents reach this size is the last; 0: no limit
	Bytes int
	// ignore rows with a greater place, so that the parts of a page fit together; 0: no limit
	Upto int64
}

// Cut returns the documents until they reach Bytes.
func (q RowsQuery) Cut(docs []json.RawMessage) []json.RawMessage {
	size := 0
	for i, doc := range docs {
		if size += len(doc); q.Bytes > 0 && size >= q.Bytes {
			return docs[:i+1]
		}
	}
	return docs
}

// ScanQuery reads rows after a place, in the order in which they were stored.
type ScanQuery struct {
	Scope  Scope
	Filter filter.Node
	// After is the place of the last row read, 0 to begin. With a place that no scan returned, rows
	// of the scope may be skipped.
	After int64
	Upto  int64 // the last place that this scan may see: Horizon at its beginning
	Limit int   // 1 to 1,000
	// the row at which the documents reach this size is the last; 0: no limit
	Bytes int
}

// Full reports whether a scan needs no more than rows, which are bytes long together.
func (q ScanQuery) Full(rows, bytes int) bool {
	return rows >= q.Limit || q.Bytes > 0 && bytes >= q.Bytes
}

// LinkError is a link of a run that ended with an error.
type LinkError struct {
	Unit   model.Unit
	URL    string
	Status uint16 // 0: no answer
	Code   string
	Detail string // in words, beyond the code; "": nothing
}

// Reads are the customers' reads. Documents are returned as they were stored.
type Reads interface {
	Rows(ctx context.Context, q RowsQuery) ([]json.RawMessage, error)
	// Count counts the rows that Rows would return without a limit.
	Count(ctx context.Context, scope Scope, f filter.Node) (int64, error)
	// CountUpto counts the rows of scopes up to a place. Once Horizon has returned that place, the
	// count never rises; removals lower it.
	CountUpto(ctx context.Context, scopes []Scope, upto int64) (int64, error)
	// Horizon returns the newest place. Rows get a greater one if their PutPages begins after
	// Horizon returned, and no greater one if their PutPages had returned before. Rows under way
	// may fall on either side.
	Horizon(ctx context.Context) (int64, error)
	// Scan returns the next rows and the place to continue after. last is Upto if and only if no
	// row follows.
	Scan(ctx context.Context, q ScanQuery) (docs []json.RawMessage, last int64, err error)
	// Order returns the next rows in the order of a field, ascending; fewer than Limit only at the
	// end. It looks at every row of the scopes, but holds only as many as it returns.
	Order(ctx context.Context, q OrderQuery) ([]Standing, error)
	// At returns the documents at up to MaxAt places of scopes, in the order of places, and how
	// many places it used. The row at which the documents reach bytes is the last; 0: no limit.
	// Rows removed meanwhile are left out.
	At(ctx context.Context, scopes []Scope, places []int64, bytes int) (docs []json.RawMessage,
		used int, err error)
	// LinkErrors returns the errored links of a job after a unit (nil: from the first), ascending.
	LinkErrors(ctx context.Context, job ids.ID, after *model.Unit, most int) ([]LinkError, error)
	// Record returns the page record of a unit; nil: there is none.
	Record(ctx context.Context, job ids.ID, unit model.Unit) (*Record, error)
}

// Package rowstore owns what is stored and never lost outside the control plane. That is rows, page
// records, link lists, sites, the errors of links, and the runs and ledger entries that are
// history. One interface, one implementation per engine, one conformance suite (rowstoretest). The
// control plane says which jobs a customer may see, and which run is the latest. A Scope carries
// the answer, and so does a Path.
//
// # Schemas
//
// During an upgrade, and after a rollback, programs of two releases work on one schema: the first
// new one migrates it. So a release has one migration of each engine at most, and a program works
// with the schema of the release after its own. That holds because
//
//   - a migration only expands: it adds a table, an index, or a column whose default says what
//     programs without it mean;
//   - programs name the columns that they read and write;
//   - what a table, column or index was for goes a release after its last reader went.
//
// The first release to look ahead is that of cluster version 2; those before it refuse any schema
// that they do not know. So what it adds waits until the cluster has that version: ClickHouse's
// third migration is Advance's, unless the database is new. SQLite has no migration for it. The
// archive is made beside the versions, and is not missed where it is not there yet.
package rowstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// ErrListUnknown is the answer for a link list that does not exist or was never finished.
var ErrListUnknown = errors.New("rowstore: no such link list")

// ErrRefused is wrapped by the error of PutPages about a page that Check does not let pass: it
// never will be stored.
var ErrRefused = errors.New("rowstore: the page is out of bounds")

// Bounds of a page that every store takes.
const (
	MaxSeq      = math.MaxInt32
	MaxPageRows = 1_000_000
)

// SchemasAhead is how many schema versions a program works with beyond those that it knows: those
// of one release.
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
	// Identity names the store itself: two stores are one if and only if theirs are equal. "": it
	// has no name.
	Identity(ctx context.Context) (string, error)
	// Claim makes the store its owner's, unless it is another one's already, and returns whose it
	// is. With take it is the owner's from now on, whoever had it. An embedded store belongs to
	// whoever asks.
	Claim(ctx context.Context, owner string, take bool) (whose string, err error)
	// Advance brings the schema to its newest version, which programs of cluster version 1 refuse.
	// It is called once the cluster has none of them any more, by who may make tables. Idempotent.
	Advance(ctx context.Context) error
	// Free is how many bytes the store's disk has left, where that is known.
	Free(ctx context.Context) (bytes uint64, known bool, err error)
	// Close waits for writes under way and releases the engine.
	Close() error
}

// Link is one entry of a link list.
type Link struct {
	Seq uint32
	URL string
}

// ListInfo describes a stored list. An unfinished one has Finished false and belongs to an intake
// under way, or to one that died: an orphan.
type ListInfo struct {
	ID       ids.ID
	Count    uint32
	Finished bool
}

// Lists keeps the immutable link lists of runs.
type Lists interface {
	// CreateList starts a list. Its id must be new.
	CreateList(ctx context.Context, list ids.ID) (ListWriter, error)
	// Links returns the links with seq >= from, ascending, at most most of them. Past the end it
	// returns none.
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]Link, error)
	// LinksAt returns the links with the given seqs (ascending), at most 100,000.
	LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]Link, error)
	// AllLists returns every list there is, for the removal of orphans.
	AllLists(ctx context.Context) ([]ListInfo, error)
	// DropList removes a list, finished or not. Idempotent.
	DropList(ctx context.Context, list ids.ID) error
}

// ListWriter takes in one list. Its writes take turns with the other writes of the store, a chunk
// at a time.
type ListWriter interface {
	// Add appends the address under its canonical form; it reports false, and stores nothing, when
	// the list has that canonical form already. Memory: at most 24 bytes per address of the list,
	// whatever their length.
	Add(ctx context.Context, url, canonical string) (added bool, err error)
	// Finish makes the list durable and readable and returns its length. Nothing can be added after
	// it.
	Finish(ctx context.Context) (uint32, error)
	// Abort removes what was added. A no-op after Finish.
	Abort(ctx context.Context) error
}

// Job says whose rows a page brings. Started (Unix microseconds) decides when they expire.
type Job struct {
	ID       ids.ID
	Customer string
	Group    ids.ID
	Scraper  ids.ID
	Started  int64
}

// PageWrite is a fetched page of a job, to be stored. Rows are complete documents: `_` keys
// included.
type PageWrite struct {
	Job  Job
	Page *model.Page
}

// Check says whether any store takes the page. Whoever puts pages asks before, so that one page
// does not fail its batch.
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

// Pages stores fetched pages: the first complete record of a unit stands for good.
type Pages interface {
	// PutPages stores, in one transaction, each page's rows and its page record. For each it
	// returns the receipt of the record that stands, in the same order. A unit that has a record
	// keeps it: nothing is written and its receipt is returned again. A page becomes a Duplicate
	// when another unit of the job was delivered under its URLHash (when not 0). Its record is
	// stored with that outcome, Last, and without rows. A page of a sealed job is dropped: nil. So
	// is one without a record behind the Last of its seq. It would never be settled, and make
	// Duplicates of the pages of a chain that goes on. A Cancelled page has no record: its receipt
	// is itself. When Check does not let a page pass, nothing of its call is stored, and the error
	// is ErrRefused. What it lets pass is stored, whatever its texts and rows hold.
	PutPages(ctx context.Context, pages []PageWrite) ([]*model.Receipt, error)
	// Records returns the receipts of the records that there are of the given units (ascending, at
	// most 4,096), ascending.
	Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt, error)
	// Seal closes a job for good. From now on PutPages drops its pages, and every record for which
	// settled is false is removed with its rows. settled is asked in the order of units, and told
	// whether the record is its chain's last; nil keeps all. Atomic, idempotent; an unknown job is
	// sealed too.
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	// Sealed says whether a job is sealed.
	Sealed(ctx context.Context, job ids.ID) (bool, error)
	// DeleteJob removes a job's rows and, with records, its page records too, and what Retention
	// keeps of them. Idempotent.
	DeleteJob(ctx context.Context, job ids.ID, records bool) error
	// JobsSince calls visit for every job that pages were put of and that started at a time (Unix
	// microseconds) or later. The calls come in no order, until visit fails.
	JobsSince(ctx context.Context, started int64, visit func(Job) error) error
	// Recount sums up the page records of a job: what the ledger must say. Of a condensed job it is
	// what was noted.
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
	// As model.Page has them.
	Final         string
	Tries         []model.Try
	Bytes, Millis uint32
	BodyHash      []byte
	Kept          *model.KeptBody
	Sums          []byte
}

// Scope says whose rows are read: those of the group, and of one scraper when Scraper is not zero.
// They are of the named jobs when Jobs is not nil (an empty Jobs reads nothing). They are never of
// the jobs in Without, of the scrapers in Gone, or of jobs that started before Since (Unix
// microseconds).
type Scope struct {
	Group   ids.ID
	Scraper ids.ID
	Jobs    []ids.ID
	Without []ids.ID
	Gone    []ids.ID
	Since   int64
}

// Sort orders by a field of the document. Whatever the direction, numbers and text that is a number
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
	// nil: newest scraped first; ties, and the end of every Sort, are broken by the row's place
	Sort   []Sort
	Offset int
	Limit  int // 1 to 1,000
	// a row that makes the documents this long together is the last; 0: they may be of any length
	Bytes int
	// rows with a greater place are not there, so that the parts of a page fit together; 0: all are
	Upto int64
}

// Cut returns the documents that Bytes leaves of some.
func (q RowsQuery) Cut(docs []json.RawMessage) []json.RawMessage {
	size := 0
	for i, doc := range docs {
		if size += len(doc); q.Bytes > 0 && size >= q.Bytes {
			return docs[:i+1]
		}
	}
	return docs
}

// ScanQuery reads rows in the order in which they were stored, from a place on.
type ScanQuery struct {
	Scope  Scope
	Filter filter.Node
	// After is the place of the last row read, 0 to begin. With one that no scan returned, rows of
	// the scope may be left out.
	After int64
	Upto  int64 // the last place that this scan may see: Horizon at its beginning
	Limit int   // 1 to 1,000
	// a row that makes the documents this long together is the last; 0: they may be of any length
	Bytes int
}

// Full says whether rows are all that is asked for. bytes is how many they have together.
func (q ScanQuery) Full(rows, bytes int) bool {
	return rows >= q.Limit || q.Bytes > 0 && bytes >= q.Bytes
}

// LinkError is a link of a run that ended with an error.
type LinkError struct {
	Unit   model.Unit
	URL    string
	Status uint16 // 0 without an answer
	Code   string
	Detail string // in words, beyond the code; "" for nothing
}

// Reads are the customers' reads. A document is returned as it was stored.
type Reads interface {
	Rows(ctx context.Context, q RowsQuery) ([]json.RawMessage, error)
	// Count counts the rows that Rows would return without a limit.
	Count(ctx context.Context, scope Scope, f filter.Node) (int64, error)
	// CountUpto counts the rows of scopes up to a place. It falls when some are removed, and never
	// rises once Horizon has been there.
	CountUpto(ctx context.Context, scopes []Scope, upto int64) (int64, error)
	// Horizon is the newest place there is. Rows whose PutPages begins after it returned have a
	// greater one, and rows whose PutPages had returned before do not. Rows under way may fall on
	// either side.
	Horizon(ctx context.Context) (int64, error)
	// Scan returns the next rows and the place to go on after: Upto when no row follows, and only
	// then.
	Scan(ctx context.Context, q ScanQuery) (docs []json.RawMessage, last int64, err error)
	// Order finds the next rows in the order of a field, ascending, fewer than asked for only at
	// the end. It looks at every row of the scopes, and holds as many as it returns.
	Order(ctx context.Context, q OrderQuery) ([]Standing, error)
	// At returns the documents at up to MaxAt places of scopes, in the order of places, and how
	// many of these it read. A row that makes the documents bytes long together is the last; 0:
	// they may be of any length. What was removed meanwhile is left out.
	At(ctx context.Context, scopes []Scope, places []int64, bytes int) (docs []json.RawMessage,
		used int, err error)
	// LinkErrors returns the errored links of a job after a unit (nil: from the first), ascending.
	LinkErrors(ctx context.Context, job ids.ID, after *model.Unit, most int) ([]LinkError, error)
	// Record is the page record of a unit; nil: there is none.
	Record(ctx context.Context, job ids.ID, unit model.Unit) (*Record, error)
}

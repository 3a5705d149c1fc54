package rowstore

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/ids"
)

// Expiry is how long rows, page records and link lists are kept, from their job's start on
// (decisions 22 and 54).
const Expiry = 90 * 24 * time.Hour

// MaxKept is how many hashes one Kept has at most: half a megabyte.
const MaxKept = 65_536

// Retention is how what is stored of a run goes when it is old, or when newer runs replace it. The
// latter takes its rows alone, by DeleteJob. Of the page records of an old one two things stay. One
// is their sum, which Recount answers from then on. The other is the addresses that were charged,
// as hashes, so that they are not charged again. Whoever expires a run keeps these first, then
// condenses the run, and then calls Expire. If that is cut off anywhere and done again, it comes to
// the same.
type Retention interface {
	// Expiring returns sealed jobs that started before a time, have page records and are not
	// condensed, at most most of them.
	Expiring(ctx context.Context, before time.Time, most int) ([]Job, error)
	// KeepCharged keeps a part of a job's charged addresses, durably. The same part again changes
	// nothing: the first one was made while all records were there.
	KeepCharged(ctx context.Context, kept Kept) error
	// EachCharged calls visit with the hashes that are kept of a scraper's jobs, some at a time, in
	// no order, until visit fails. One may come more than once.
	EachCharged(ctx context.Context, scraper ids.ID, visit func(hashes []uint64) error) error
	// Condense notes the sum of a sealed job's records, durably: they may go from now on. at is
	// when. The first sum stands.
	Condense(ctx context.Context, job ids.ID, sum Recount, at time.Time) error
	// Holding returns jobs that have rows in a scope, at most most of them, in no order.
	Holding(ctx context.Context, scope Scope, most int) ([]ids.ID, error)
	// JobsOf returns jobs of a customer by id, those behind one, at most most of them. Of each
	// there are rows, page records or charged addresses.
	JobsOf(ctx context.Context, customer string, after ids.ID, most int) ([]Job, error)
	// EraseJob removes the rows, the page records and the charged addresses of a condensed job. Its
	// sum stays. Idempotent.
	EraseJob(ctx context.Context, job ids.ID) error
	// Expire removes the rows of the jobs that started before a time, and the page records of those
	// that are condensed. It may leave what is up to a week older; a Scope hides it. It may take
	// long, delays no other call and is to be called again after an error. Idempotent.
	Expire(ctx context.Context, before time.Time) error
}

// Kept is a part of the start addresses that a job was charged for.
type Kept struct {
	Scraper, Job ids.ID
	Part         uint32
	Hashes       []uint64 // ChargedHash of each, at most MaxKept
}

// ChargedHash is what is kept of an address, by its canonical form (decision 15), that a scraper
// was charged for. Whoever chooses addresses does not know the scraper's id before it is made.
func ChargedHash(scraper ids.ID, canonical string) uint64 {
	return xxh3.HashStringSeed(canonical, binary.BigEndian.Uint64(scraper[4:]))
}

// NoteExpiry is what the work that expires runs notes of how far it is, where every reader of the
// state finds it. Runs that started before are shown no more.
func NoteExpiry(before time.Time) []byte {
	return strconv.AppendInt(nil, before.UnixMicro(), 10)
}

// ReadExpiry reads what NoteExpiry wrote, as the Since of a Scope; 0: nothing expired yet.
func ReadExpiry(note []byte) int64 {
	since, err := strconv.ParseInt(string(note), 10, 64)
	if err != nil {
		return 0 // of before there were notes
	}
	return since
}

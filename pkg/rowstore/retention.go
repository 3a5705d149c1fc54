package rowstore

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/ids"
)

// Expiry is how long rows, page records and link lists are kept after their job's start (decisions
// 22 and 54).
const Expiry = 90 * 24 * time.Hour

// MaxKept is the most hashes in one Kept: half a megabyte.
const MaxKept = 65_536

// Retention removes what is stored of a run when the run is old or newer runs replace it. A
// replaced run loses only its rows, by DeleteJob. An old run also loses its page records, but two
// things stay. One is their sum, which Recount returns from then on. The other is the hashes of the
// charged addresses, so that they are not charged again. Expiring a run takes KeepCharged, Condense
// and Expire, in this order. Repeating them after an interruption is safe.
type Retention interface {
	// Expiring returns at most most sealed jobs that started before a time, have page records and
	// are not condensed.
	Expiring(ctx context.Context, before time.Time, most int) ([]Job, error)
	// KeepCharged durably keeps a part of a job's charged addresses. The first write of a part
	// stands, since it was made while all records were there.
	KeepCharged(ctx context.Context, kept Kept) error
	// EachCharged calls visit with batches of the hashes kept for a scraper's jobs, in no order,
	// until visit fails. A hash may come more than once.
	EachCharged(ctx context.Context, scraper ids.ID, visit func(hashes []uint64) error) error
	// Condense durably notes the sum of a sealed job's records, which may go from now on. at is the
	// time of the note. The first sum stands.
	Condense(ctx context.Context, job ids.ID, sum Recount, at time.Time) error
	// Holding returns at most most jobs that have rows in a scope, in no order.
	Holding(ctx context.Context, scope Scope, most int) ([]ids.ID, error)
	// JobsOf returns at most most jobs of a customer with ids after a given one, by id. It returns
	// only jobs with rows, page records or charged addresses.
	JobsOf(ctx context.Context, customer string, after ids.ID, most int) ([]Job, error)
	// EraseJob removes the rows, the page records and the charged addresses of a condensed job. Its
	// sum stays. Idempotent.
	EraseJob(ctx context.Context, job ids.ID) error
	// Expire removes the rows of jobs that started before a time, and the page records of the
	// condensed ones. It may leave what is up to a week older; a Scope hides it. It may take long
	// but delays no other call. Idempotent; call it again after an error.
	Expire(ctx context.Context, before time.Time) error
}

// Kept is a part of the start addresses that a job was charged for.
type Kept struct {
	Scraper, Job ids.ID
	Part         uint32
	Hashes       []uint64 // ChargedHash of each, at most MaxKept
}

// ChargedHash is the kept hash of a charged address's canonical form (decision 15). The scraper's
// id seeds it: nobody who chooses addresses knows it beforehand.
func ChargedHash(scraper ids.ID, canonical string) uint64 {
	return xxh3.HashStringSeed(canonical, binary.BigEndian.Uint64(scraper[4:]))
}

// NoteExpiry encodes how far the work that expires runs has come, for every reader of the state.
// Runs that started before are no longer shown.
func NoteExpiry(before time.Time) []byte {
	return strconv.AppendInt(nil, before.UnixMicro(), 10)
}

// ReadExpiry reads what NoteExpiry wrote, as the Since of a Scope; 0: nothing has expired yet.
func ReadExpiry(note []byte) int64 {
	since, err := strconv.ParseInt(string(note), 10, 64)
	if err != nil {
		return 0 // no note yet
	}
	return since
}

package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
)

// ImportsSince is the first cluster version in which customers upload files.
const ImportsSince = 2

// Import makes the rows of a run from an upload, or from kept bodies of another run. It is open
// until the run has ended. It then stays until the row store has removed all rows that it hides.
// Times are in Unix milliseconds.
type Import struct {
	Job      ids.ID `cbor:"1,keyasint"` // the run, and the id of the file
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"`
	Scraper  ids.ID `cbor:"4,keyasint"`
	Format   string `cbor:"5,keyasint"` // of the file
	Bytes    int64  `cbor:"6,keyasint"`
	Heavy    bool   `cbor:"7,keyasint,omitempty"` // few of these are imported at a time
	Begun    int64  `cbor:"8,keyasint"`
	Ended    int64  `cbor:"9,keyasint,omitempty"` // 0: it is open
	// Hidden lists the runs whose rows are removed after its end: replaced runs, or its own.
	Hidden []ids.ID `cbor:"10,keyasint,omitempty"`
	// Before is the scraper's last run when the import began; zero: there was none.
	Before ids.ID `cbor:"11,keyasint,omitzero"`
	// Advanced is when it last made progress.
	Advanced int64 `cbor:"12,keyasint"`
	// Key is the column by which the file's rows are merged into the existing ones; "": they
	// replace them. Asked is the column that the call named, where none is fixed.
	Key   string `cbor:"13,keyasint,omitempty"`
	Asked string `cbor:"14,keyasint,omitempty"`
	// From is the run whose kept bodies are read instead of a file; zero: there is none.
	From ids.ID `cbor:"20,keyasint,omitzero"`
	// Elsewhere lists the other groups where hidden rows may lie: the scraper was moved.
	Elsewhere []ids.ID `cbor:"21,keyasint,omitempty"`
}

var importsTable = define(ImportsSince, "imports",
	index("id", true, func(i *Import) []any { return []any{i.Job} }),
	index("customer", true, func(i *Import) []any { return []any{i.Customer, i.Job} }),
	index("group", true, func(i *Import) []any { return []any{i.Group, i.Job} }),
	index("open", true, func(i *Import) []any {
		if i.Ended != 0 {
			return nil
		}
		return []any{i.Heavy, i.Job}
	}),
	index("ended", true, func(i *Import) []any {
		if i.Ended == 0 {
			return nil
		}
		return []any{i.Ended, i.Job}
	}),
	index("elsewhere", true, func(i *Import) []any {
		if len(i.Elsewhere) == 0 {
			return nil
		}
		return []any{i.Job}
	}),
).untold()

// Import returns the import of a run; nil: it has none, or nothing of it is hidden any more.
func (v *View) Import(job ids.ID) *Import { return importsTable.first(v, "id", job) }

// Imports lists a customer's imports, the oldest first.
func (v *View) Imports(customer string) []*Import {
	return importsTable.all(v, "customer_prefix", customer)
}

// OpenImports counts the open imports of all customers.
func (v *View) OpenImports() int { return importsTable.count(v, "open") }

// HeavyImports visits the open heavy imports, oldest first, until visit returns false.
func (v *View) HeavyImports(visit func(*Import) bool) {
	importsTable.each(v, false, visit, "open_prefix", true)
}

// EndedImports visits the ended imports whose hidden rows are being removed, the earliest ended
// first, until visit returns false.
func (v *View) EndedImports(visit func(*Import) bool) {
	importsTable.each(v, false, visit, "ended_prefix")
}

// Stuck reports whether an upload has made no progress for so long that another file may take its
// scraper. A chosen rest, as behind other uploads, counts as progress. now is in Unix milliseconds.
func (v *View) Stuck(job ids.ID, now int64) bool {
	known, item := v.Import(job), v.WorkItem(job)
	hold := int64(v.Settings().Uploads.Whole().HoldMinutes) * 60_000
	return known != nil && known.Advanced+hold <= now &&
		(item == nil || item.State == WorkFailed || item.Advanced+hold <= now)
}

// HiddenIn lists the runs of a group whose rows no read shows: unfinished uploads, and runs that an
// upload has replaced.
func (v *View) HiddenIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	importsTable.each(v, false, func(i *Import) bool {
		if i.Ended == 0 {
			jobs = append(jobs, i.Job)
		}
		jobs = append(jobs, i.Hidden...)
		return true
	}, "group_prefix", group)
	importsTable.each(v, false, func(i *Import) bool { // few: their rows are being removed
		if slices.Contains(i.Elsewhere, group) {
			jobs = append(jobs, i.Hidden...)
		}
		return true
	}, "elsewhere_prefix")
	return jobs
}

// PutImport adds or replaces an import.
func (t *Tx) PutImport(i *Import) { importsTable.put(t, i) }

// RemoveImport removes an import.
func (t *Tx) RemoveImport(i *Import) { importsTable.remove(t, i) }

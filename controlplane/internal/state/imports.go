package state

import "shoal.dev/shoal/pkg/ids"

// ImportsSince is the first cluster version in which customers upload files.
const ImportsSince = 2

// Import is what becomes the rows of a run: an upload, or kept bodies of another run. It is open
// until the run has ended. From then on it stays until the row store has no rows any more that it
// hides. Times are in Unix milliseconds.
type Import struct {
	Job      ids.ID `cbor:"1,keyasint"` // the run; the file has its id, too
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"`
	Scraper  ids.ID `cbor:"4,keyasint"`
	Format   string `cbor:"5,keyasint"` // of the file
	Bytes    int64  `cbor:"6,keyasint"`
	Heavy    bool   `cbor:"7,keyasint,omitempty"` // few of these are under way at a time
	Begun    int64  `cbor:"8,keyasint"`
	Ended    int64  `cbor:"9,keyasint,omitempty"` // 0: it is open
	// Hidden are the runs whose rows go, once it has ended: those that it replaces, or its own.
	Hidden []ids.ID `cbor:"10,keyasint,omitempty"`
	// Before is the scraper's last run when it began, zero: there was none.
	Before ids.ID `cbor:"11,keyasint,omitzero"`
	// Advanced is when it last came on.
	Advanced int64 `cbor:"12,keyasint"`
	// Key is the column by which the file's rows are added to those that are there; "": they take
	// their place. Asked is the column that the call named, where none is fixed.
	Key   string `cbor:"13,keyasint,omitempty"`
	Asked string `cbor:"14,keyasint,omitempty"`
	// From is the run whose kept bodies are read instead of a file; zero: none is.
	From ids.ID `cbor:"20,keyasint,omitzero"`
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
).untold()

// Import is nil for a run that is none, or of which nothing is hidden any more.
func (v *View) Import(job ids.ID) *Import { return importsTable.first(v, "id", job) }

// Imports lists a customer's, the oldest first.
func (v *View) Imports(customer string) []*Import {
	return importsTable.all(v, "customer_prefix", customer)
}

// OpenImports counts those that are open, of all customers.
func (v *View) OpenImports() int { return importsTable.count(v, "open") }

// HeavyImports visits those that are heavy and open, the oldest first, until visit returns false.
func (v *View) HeavyImports(visit func(*Import) bool) {
	importsTable.each(v, false, visit, "open_prefix", true)
}

// EndedImports visits those whose hidden rows are being removed, the longest ended first, until
// visit returns false.
func (v *View) EndedImports(visit func(*Import) bool) {
	importsTable.each(v, false, visit, "ended_prefix")
}

// Stuck says whether an upload has not come on for so long that another file may take its scraper.
// One that rests by its own wish, as behind others, comes on. now is in Unix milliseconds.
func (v *View) Stuck(job ids.ID, now int64) bool {
	known, item := v.Import(job), v.WorkItem(job)
	hold := int64(v.Settings().Uploads.Whole().HoldMinutes) * 60_000
	return known != nil && known.Advanced+hold <= now &&
		(item == nil || item.State == WorkFailed || item.Advanced+hold <= now)
}

// HiddenIn lists the runs in a group of which no read shows a row. They are uploads that are not
// whole, and those that another one has replaced.
func (v *View) HiddenIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	importsTable.each(v, false, func(i *Import) bool {
		if i.Ended == 0 {
			jobs = append(jobs, i.Job)
		}
		jobs = append(jobs, i.Hidden...)
		return true
	}, "group_prefix", group)
	return jobs
}

// PutImport adds or replaces.
func (t *Tx) PutImport(i *Import) { importsTable.put(t, i) }

// RemoveImport removes.
func (t *Tx) RemoveImport(i *Import) { importsTable.remove(t, i) }

package state

import "shoal.dev/shoal/pkg/ids"

// DeletedRun marks a run whose rows its customer deleted, wherever its record is. No read shows
// the rows from then on. The mark stays until the history has no such run any more.
type DeletedRun struct {
	Job      ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"` // where its rows lie
	At       int64  `cbor:"4,keyasint"` // Unix milliseconds
	// Removed is when the row store had none of its rows any more, in Unix milliseconds; 0: it has.
	Removed int64 `cbor:"5,keyasint,omitempty"`
}

// whileHeld are the parts of a key that the mark has until the rows are removed.
func (d *DeletedRun) whileHeld(parts ...any) []any {
	if d.Removed != 0 {
		return nil
	}
	return parts
}

var deletedRunsTable = define(2, "deletedRuns",
	index("id", true, func(d *DeletedRun) []any { return []any{d.Job} }),
	index("customer", true, func(d *DeletedRun) []any { return []any{d.Customer, d.Job} }),
	index("held", true, func(d *DeletedRun) []any { return d.whileHeld(d.Group, d.Job) }),
	index("removed", true, func(d *DeletedRun) []any {
		if d.Removed == 0 {
			return nil
		}
		return []any{d.Removed, d.Job}
	}),
).untold()

// DeletedRun is nil for a run whose rows nobody deleted.
func (v *View) DeletedRun(job ids.ID) *DeletedRun { return deletedRunsTable.first(v, "id", job) }

// DeletedRunsOf lists a customer's.
func (v *View) DeletedRunsOf(customer string) []*DeletedRun {
	return deletedRunsTable.all(v, "customer_prefix", customer)
}

// DeletedIn lists the runs of a group whose rows are being removed.
func (v *View) DeletedIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	deletedRunsTable.each(v, false, func(d *DeletedRun) bool {
		jobs = append(jobs, d.Job)
		return true
	}, "held_prefix", group)
	return jobs
}

// DeletedHeld visits the runs whose rows are being removed, until visit returns false.
func (v *View) DeletedHeld(visit func(*DeletedRun) bool) {
	deletedRunsTable.each(v, false, visit, "held_prefix")
}

// DeletedByAge visits the runs whose rows have been removed, the longest ago first, until visit
// returns false.
func (v *View) DeletedByAge(visit func(*DeletedRun) bool) {
	deletedRunsTable.each(v, false, visit, "removed_prefix")
}

// PutDeletedRun adds or replaces.
func (t *Tx) PutDeletedRun(d *DeletedRun) { deletedRunsTable.put(t, d) }

// RemoveDeletedRun removes.
func (t *Tx) RemoveDeletedRun(d *DeletedRun) { deletedRunsTable.remove(t, d) }

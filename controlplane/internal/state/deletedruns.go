package state

import "shoal.dev/shoal/pkg/ids"

// DeletedRun marks a run whose rows its customer deleted, wherever the run's record is. No read
// shows the rows any more. The mark stays until the run leaves the history.
type DeletedRun struct {
	Job      ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"` // where its rows lie
	At       int64  `cbor:"4,keyasint"` // Unix milliseconds
	// Removed is when the last of its rows was removed, in Unix milliseconds; 0: not yet.
	Removed int64 `cbor:"5,keyasint,omitempty"`
}

// whileHeld returns parts until the rows are removed, then nil.
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
).told((*DeletedRun).telling).leaving()

func (d *DeletedRun) telling() telling {
	return telling{d.Customer, struct {
		Group ids.ID `json:"groupId"`
		At    int64  `json:"deletedAt"`
	}{d.Group, d.At}}
}

// DeletedRun returns the mark of a run; nil: its rows were not deleted.
func (v *View) DeletedRun(job ids.ID) *DeletedRun { return deletedRunsTable.first(v, "id", job) }

// DeletedRunsOf lists a customer's marks.
func (v *View) DeletedRunsOf(customer string) []*DeletedRun {
	return deletedRunsTable.all(v, "customer_prefix", customer)
}

// DeletedIn lists the runs of a group whose rows are still being removed.
func (v *View) DeletedIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	deletedRunsTable.each(v, false, func(d *DeletedRun) bool {
		jobs = append(jobs, d.Job)
		return true
	}, "held_prefix", group)
	return jobs
}

// DeletedHeld visits the runs whose rows are still being removed, until visit returns false.
func (v *View) DeletedHeld(visit func(*DeletedRun) bool) {
	deletedRunsTable.each(v, false, visit, "held_prefix")
}

// DeletedByAge visits the runs whose rows have been removed, the earliest removal first, until
// visit returns false.
func (v *View) DeletedByAge(visit func(*DeletedRun) bool) {
	deletedRunsTable.each(v, false, visit, "removed_prefix")
}

// PutDeletedRun adds or replaces a mark.
func (t *Tx) PutDeletedRun(d *DeletedRun) { deletedRunsTable.put(t, d) }

// RemoveDeletedRun removes a mark.
func (t *Tx) RemoveDeletedRun(d *DeletedRun) { deletedRunsTable.remove(t, d) }

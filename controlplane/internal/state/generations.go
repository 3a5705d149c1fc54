package state

import "shoal.dev/shoal/pkg/ids"

// Undone is a run launched after the cut, which a restore undid. Nobody reads its rows, and they
// are removed when the restore's grace period has passed.
type Undone struct {
	Job      ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"`
	Scraper  ids.ID `cbor:"4,keyasint"`
}

var undoneTable = define(2, "undone",
	index("id", true, func(u *Undone) []any { return []any{u.Job} }),
	index("group", true, func(u *Undone) []any { return []any{u.Group, u.Job} }),
).untold()

// Undone visits the undone runs whose rows are not removed yet, by job, until visit returns false.
func (v *View) Undone(visit func(*Undone) bool) { undoneTable.each(v, false, visit, "id_prefix") }

// UndoneIn lists the undone runs of a group.
func (v *View) UndoneIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	undoneTable.each(v, false, func(u *Undone) bool { jobs = append(jobs, u.Job); return true },
		"group_prefix", group)
	return jobs
}

// UndoneRun returns the mark of a run; nil: no restore undid it.
func (v *View) UndoneRun(job ids.ID) *Undone { return undoneTable.first(v, "id", job) }

// PutUndone adds a mark.
func (t *Tx) PutUndone(u *Undone) { undoneTable.put(t, u) }

// RemoveUndone removes a mark.
func (t *Tx) RemoveUndone(u *Undone) { undoneTable.remove(t, u) }

// Revoked marks a revoked or removed key, account, passkey, share or webhook, so that no restore
// brings it back.
type Revoked struct {
	ID ids.ID `cbor:"1,keyasint"` // of a share: its RevokedID
	At int64  `cbor:"2,keyasint"`
}

var revokedTable = define(2, "revoked",
	index("id", true, func(r *Revoked) []any { return []any{r.ID} }),
	index("age", true, func(r *Revoked) []any { return []any{r.At, r.ID} }),
).untold()

// Revoked returns the mark of an id; nil: it was not revoked, or long ago.
func (v *View) Revoked(id ids.ID) *Revoked { return revokedTable.first(v, "id", id) }

// RevokedByAge visits all marks, oldest first, until visit returns false.
func (v *View) RevokedByAge(visit func(*Revoked) bool) {
	revokedTable.each(v, false, visit, "age_prefix")
}

// PutRevoked adds or replaces a mark.
func (t *Tx) PutRevoked(r *Revoked) { revokedTable.put(t, r) }

// RemoveRevoked removes a mark.
func (t *Tx) RemoveRevoked(r *Revoked) { revokedTable.remove(t, r) }

// EachKey visits all keys, by id, until visit returns false.
func (v *View) EachKey(visit func(*Key) bool) { keysTable.each(v, false, visit, "id_prefix") }

// EachScraper visits all scrapers, by id, until visit returns false.
func (v *View) EachScraper(visit func(*Scraper) bool) {
	scrapersTable.each(v, false, visit, "id_prefix")
}

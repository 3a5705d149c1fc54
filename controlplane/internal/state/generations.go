package state

import (
	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

// sinceVersion2 says whether older binaries do not know a table.
func sinceVersion2(name string) bool { return name == "undone" || name == "revoked" }

func undoneTable() *memdb.TableSchema {
	return table("undone",
		index("id", true, func(u *Undone) []any { return []any{u.Job} }),
		index("group", true, func(u *Undone) []any { return []any{u.Group, u.Job} }),
	)
}

// Undone visits the runs that restores undid and whose rows are not gone yet, by job, until visit returns false.
func (v *View) Undone(visit func(*Undone) bool) { each(v, false, visit, "undone", "id_prefix") }

// UndoneIn lists those of a group.
func (v *View) UndoneIn(group ids.ID) []ids.ID {
	var jobs []ids.ID
	each(v, false, func(u *Undone) bool { jobs = append(jobs, u.Job); return true }, "undone", "group_prefix", group)
	return jobs
}

// UndoneRun is nil for a run that no restore undid.
func (v *View) UndoneRun(job ids.ID) *Undone { return first[Undone](v, "undone", "id", job) }

// PutUndone adds.
func (t *Tx) PutUndone(u *Undone) { put(t, "undone", u) }

// RemoveUndone removes.
func (t *Tx) RemoveUndone(u *Undone) { remove(t, "undone", u) }

func revokedTable() *memdb.TableSchema {
	return table("revoked",
		index("id", true, func(r *Revoked) []any { return []any{r.Key} }),
		index("age", true, func(r *Revoked) []any { return []any{r.At, r.Key} }),
	)
}

// Revoked is nil for a key that was not revoked, or long ago.
func (v *View) Revoked(key ids.ID) *Revoked { return first[Revoked](v, "revoked", "id", key) }

// RevokedByAge visits all, oldest first, until visit returns false.
func (v *View) RevokedByAge(visit func(*Revoked) bool) {
	each(v, false, visit, "revoked", "age_prefix")
}

// PutRevoked adds or replaces.
func (t *Tx) PutRevoked(r *Revoked) { put(t, "revoked", r) }

// RemoveRevoked removes.
func (t *Tx) RemoveRevoked(r *Revoked) { remove(t, "revoked", r) }

// EachKey visits all keys, by id, until visit returns false.
func (v *View) EachKey(visit func(*Key) bool) { each(v, false, visit, "keys", "id_prefix") }

// EachScraper visits all scrapers, by id, until visit returns false.
func (v *View) EachScraper(visit func(*Scraper) bool) { each(v, false, visit, "scrapers", "id_prefix") }

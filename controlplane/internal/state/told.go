package state

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bounds of the audit trail's entries. A command makes as many entries as the changes need that the
// trail always tells.
const (
	maxNoted      = 64       // changes not always told, in a command, that are compared
	maxTold       = 16       // changes in an entry, and not always told ones in all entries
	maxToldDetail = 1 << 10  // bytes of a record before, and again after
	maxToldBytes  = 12 << 10 // bytes of an entry's changes; the last one may exceed it
)

// telling is what the audit trail tells about a record.
type telling struct {
	owner  string // the customer who owns it, "" for none
	detail any    // comparable, and encoded as JSON; nil: as if there were no record
}

// told sets what the audit trail tells about the table's records, which must not include secrets.
// Without it, the trail only tells which record an admin has changed.
func (tb *table[R]) told(tell func(*R) telling) *table[R] {
	tb.tell = func(record any) telling { return tell(record.(*R)) }
	return tb
}

// always makes the trail tell every change of the table's records, not only those by admins.
func (tb *table[R]) always() *table[R] {
	tb.alwaysTold = true
	return tb
}

// untold keeps the table out of the audit trail: its records follow from others, or only say that a
// call was made.
func (tb *table[R]) untold() *table[R] {
	tb.neverTold = true
	return tb
}

// leaving keeps removals out of the trail: the records were archived, or had no effect.
func (tb *table[R]) leaving() *table[R] {
	tb.leaves = true
	return tb
}

// noted is a change of a record by the command.
type noted struct {
	kind          *kind
	record        any // either version, for its key
	before, after telling
}

// notes are the changes by a command that the audit trail may tell, in their order.
type notes struct {
	all        []noted
	places     map[place]int
	others     int    // those that are not always told
	passedOver uint32 // changes beyond maxNoted
}

// place is a record's place in all tables.
type place struct {
	kind *kind
	key  string
}

// noteChange notes a change for the audit trail. old or record is nil if it does not exist.
func (t *Tx) noteChange(k *kind, old, record any) {
	if k.neverTold || !t.byAdmin && !k.alwaysTold || k.leaves && record == nil {
		return
	}
	before, after := k.telling(old), k.telling(record)
	if k.tell != nil && before == after {
		return
	}
	one := record
	if one == nil {
		one = old
	}
	n, at := &t.notes, place{k, k.key(k.id, one)}
	if known, again := n.places[at]; again {
		n.all[known].after = after
		return
	}
	if !k.alwaysTold {
		if n.others == maxNoted {
			n.passedOver++
			return
		}
		n.others++
	}
	if n.places == nil {
		n.places = map[place]int{}
	}
	n.places[at] = len(n.all)
	n.all = append(n.all, noted{k, one, before, after})
}

func (k *kind) telling(record any) telling {
	if record == nil || k.tell == nil {
		return telling{}
	}
	return k.tell(record)
}

// told makes the entries of the noted changes, none when there is nothing to tell. Each is of one
// customer, under whom it is found. The first one counts the changes that found no place.
func (t *Tx) told(action string) (entries []*AuditEntry) {
	if t.ClusterVersion() < AuditSince {
		return nil
	}
	var e *AuditEntry
	bytes, owned, others, more := 0, false, 0, t.notes.passedOver
	for _, n := range t.notes.all {
		if n.kind.tell != nil && n.before == n.after {
			continue // changed and changed back
		}
		if !n.kind.alwaysTold {
			if others == maxTold {
				more++
				continue
			}
			others++
		}
		owner := n.owner()
		if e == nil || len(e.Changes) == maxTold || bytes >= maxToldBytes ||
			owner != "" && owned && owner != e.Customer {
			e, bytes, owned = t.newAudit(action), 0, false
			entries = append(entries, e)
		}
		if owner != "" && !owned {
			e.Customer, owned = owner, true
		}
		change := AuditChange{Table: n.kind.name, Record: n.kind.printKey(n.record),
			Before: writeDetail(n.before.detail), After: writeDetail(n.after.detail)}
		bytes += len(change.Record) + len(change.Before) + len(change.After)
		e.Changes = append(e.Changes, change)
	}
	if len(entries) > 0 {
		entries[0].More = more
	}
	return entries
}

func (n *noted) owner() string {
	if n.after.owner != "" {
		return n.after.owner
	}
	return n.before.owner
}

// printKey returns a record's key in readable form.
func (k *kind) printKey(record any) string {
	var parts []string
	for _, part := range k.indexes[k.id].parts(record) {
		parts = append(parts, fmt.Sprint(part))
	}
	return shorten(strings.Join(parts, "/"))
}

// writeDetail encodes a detail as JSON.
func writeDetail(detail any) string {
	if detail == nil {
		return ""
	}
	text, err := json.Marshal(detail)
	if err != nil {
		panic(fmt.Sprintf("state: what the audit trail tells: %v", err)) // plain structs
	}
	return shorten(string(text))
}

// shorten returns a text, or the length and hash of a long one.
func shorten(text string) string {
	if len(text) <= maxToldDetail {
		return text
	}
	return fmt.Sprintf(`{"bytes":%d,"sha256":"%s"}`, len(text), sumOf([]byte(text)))
}

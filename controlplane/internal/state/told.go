package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bounds of one entry of the audit trail.
const (
	maxNoted      = 64       // changes that are compared
	maxTold       = 16       // changes that it lists
	maxToldDetail = 1 << 10  // bytes of a record before, and again after
	maxToldBytes  = 12 << 10 // bytes of all changes; the last one may exceed it
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
	key           string
	record        any // either version, for its key
	before, after telling
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
	id := k.key(k.id, one)
	at := slices.IndexFunc(t.noted, func(n noted) bool { return n.kind == k && n.key == id })
	switch {
	case at >= 0:
		t.noted[at].after = after
	case len(t.noted) == maxNoted:
		t.passedOver++
	default:
		t.noted = append(t.noted, noted{k, id, one, before, after})
	}
}

func (k *kind) telling(record any) telling {
	if record == nil || k.tell == nil {
		return telling{}
	}
	return k.tell(record)
}

// told makes the entry of the noted changes, nil when there is nothing to tell.
func (t *Tx) told(action string) *AuditEntry {
	if len(t.noted) == 0 || t.ClusterVersion() < AuditSince {
		return nil
	}
	e := t.newAudit(action)
	e.More = t.passedOver
	bytes, owned := 0, false
	for _, n := range t.noted {
		if n.kind.tell != nil && n.before == n.after {
			continue // changed and changed back
		}
		if owner := n.owner(); owner != "" && !owned {
			e.Customer, owned = owner, true
		}
		if len(e.Changes) == maxTold || bytes >= maxToldBytes {
			e.More++
			continue
		}
		change := AuditChange{Table: n.kind.name, Record: n.kind.printKey(n.record),
			Before: writeDetail(n.before.detail), After: writeDetail(n.after.detail)}
		bytes += len(change.Record) + len(change.Before) + len(change.After)
		e.Changes = append(e.Changes, change)
	}
	if len(e.Changes) == 0 {
		return nil
	}
	return e
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
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf(`{"bytes":%d,"sha256":"%s"}`, len(text), hex.EncodeToString(sum[:]))
}

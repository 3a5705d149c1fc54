package state

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// AuditSince is the first cluster version in which there is an audit trail.
const AuditSince = 2

// Actor is who caused a command to be proposed, as the API knows it. The API bounds all its texts.
type Actor struct {
	Subject     string `cbor:"1,keyasint,omitempty"` // of a sign-in
	Key         ids.ID `cbor:"2,keyasint,omitzero"`  // the API key, zero for a sign-in
	Admin       bool   `cbor:"3,keyasint,omitempty"` // an admin, perhaps acting for a customer
	Customer    string `cbor:"4,keyasint,omitempty"` // the owner of the resources
	Operation   string `cbor:"5,keyasint,omitempty"` // of the API
	Address     string `cbor:"6,keyasint,omitempty"` // of the client
	Correlation string `cbor:"7,keyasint,omitempty"` // id of the call, as in the log
}

// Name identifies the actor in searches: the subject or the key's id; "": the cluster itself.
func (a *Actor) Name() string {
	if a.Subject != "" || a.Key.IsZero() {
		return a.Subject
	}
	return a.Key.String()
}

// AuditEntry is an entry of the audit trail. The command that it describes makes it, and it never
// changes. It holds no secret.
type AuditEntry struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Number     uint64 `cbor:"2,keyasint"` // from 1; restores do not reset it
	// Before is the hash of the previous entry; zero for the first.
	Before Hash   `cbor:"3,keyasint"`
	Index  uint64 `cbor:"4,keyasint"` // of the command
	At     int64  `cbor:"5,keyasint"`
	Action string `cbor:"6,keyasint"`
	Actor  Actor  `cbor:"7,keyasint,omitzero"`
	// Customer is the customer concerned, "" for none.
	Customer string        `cbor:"8,keyasint,omitempty"`
	Changes  []AuditChange `cbor:"9,keyasint,omitempty"`
	// More counts the changes that did not fit.
	More uint32 `cbor:"10,keyasint,omitempty"`
	// Count is the number of failed sign-ins that the entry sums up.
	Count uint32 `cbor:"11,keyasint,omitempty"`
	// FailedFrom is when the minute of those sign-ins began, in Unix milliseconds; 0: no minute.
	FailedFrom int64 `cbor:"13,keyasint,omitempty"`
	// Restored is the head that a restore abandoned; nil: the entry is not a restore's first.
	Restored *AuditMark `cbor:"12,keyasint,omitempty"`
}

// AuditChange is a record that a command changed. Before and After are JSON. Each is "" if there
// was no record, or nothing of it may be told.
type AuditChange struct {
	Table  string `cbor:"1,keyasint"`
	Record string `cbor:"2,keyasint"`
	Before string `cbor:"3,keyasint,omitempty"`
	After  string `cbor:"4,keyasint,omitempty"`
}

// AuditMark identifies an entry by its place and its hash.
type AuditMark struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Number     uint64 `cbor:"2,keyasint"`
	Hash       Hash   `cbor:"3,keyasint"`
}

// AuditHead is the end of the trail. The row store has the entries of this path up to Archived.
type AuditHead struct {
	Number   uint64 `cbor:"1,keyasint"` // of the newest entry, 0: there is none
	Hash     Hash   `cbor:"2,keyasint"`
	Archived uint64 `cbor:"3,keyasint,omitempty"`
	Waiting  uint32 `cbor:"4,keyasint,omitempty"` // entries in the state
}

// AuditFailures are the failed sign-ins of one address in one minute.
type AuditFailures struct {
	Minute  int64  `cbor:"1,keyasint"` // since 1970
	Address string `cbor:"2,keyasint"` // "": all addresses beyond maxFailing
	Count   uint32 `cbor:"3,keyasint"`
}

// MaxAuditWaiting bounds the entries that wait for the archive because of customers.
const MaxAuditWaiting = 100_000

// maxWaitingOfStrangers is how many entries may wait when a minute of failed sign-ins still has one
// for each address.
const maxWaitingOfStrangers = MaxAuditWaiting / 4

// maxFailing bounds the addresses counted separately in one minute.
const maxFailing = 1_000

var (
	auditTable = define(AuditSince, "audit",
		index("id", true, func(e *AuditEntry) []any { return []any{e.Generation, e.Number} }),
		index("order", true, func(e *AuditEntry) []any {
			return []any{e.Index, e.Number, e.Generation}
		}),
	).untold()
	auditHeadTable = define(AuditSince, "audithead",
		index("id", true, func(*AuditHead) []any { return []any{"head"} })).untold()
	auditFailuresTable = define(AuditSince, "auditfailures",
		index("id", true, func(f *AuditFailures) []any { return []any{f.Minute, f.Address} }),
	).untold()
)

// AuditHead is the end of the trail.
func (v *View) AuditHead() AuditHead {
	if head := auditHeadTable.first(v, "id", "head"); head != nil {
		return *head
	}
	return AuditHead{}
}

// AuditFull reports whether so many entries wait for the archive that customers add none.
func (v *View) AuditFull() bool { return v.AuditHead().Waiting >= MaxAuditWaiting }

// EachAudit visits the entries in the state, in the order of their making, until visit returns
// false. They include entries that a restore abandoned.
func (v *View) EachAudit(visit func(*AuditEntry) bool) {
	auditTable.each(v, false, visit, "order_prefix")
}

// AuditFrom visits the entries of a generation from a number on, until visit returns false.
func (v *View) AuditFrom(generation ids.ID, number uint64, visit func(*AuditEntry) bool) {
	auditTable.from(v, func(e *AuditEntry) bool { return e.Generation == generation && visit(e) },
		"id", generation, number)
}

// OnPath reports whether an entry is part of this state's past; false: a restore abandoned it.
func (v *View) OnPath(e *AuditEntry) bool {
	return v.descendsFrom(e.Generation, e.Index, e.Index)
}

// auditBody encodes an entry as it is hashed and archived.
func (s *summer) auditBody(e *AuditEntry) []byte {
	body, err := s.codec.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("state: encode an entry of the audit trail: %v", err)) // a plain struct
	}
	return body
}

// appendAudit adds an entry at the end of the chain.
func (t *Tx) appendAudit(e *AuditEntry) {
	head := t.AuditHead()
	e.Generation = t.Cluster().generation()
	e.Number, e.Before, e.Index, e.At = head.Number+1, head.Hash, t.Index, t.Now
	auditTable.put(t, e)
	head.Number, head.Hash = e.Number, sha256.Sum256(t.store.summer.auditBody(e))
	head.Waiting++
	auditHeadTable.put(t, &head)
}

// By sets who caused the command, before it changes anything; nil: the cluster itself.
func (t *Tx) By(actor *Actor) {
	t.actor = actor
	t.byAdmin = actor != nil && actor.Admin
}

// Audit records what the command has changed, if the trail tells of that.
func (t *Tx) Audit(action string) {
	for _, e := range t.told(action) {
		t.appendAudit(e)
	}
}

// AuditEvent records an event that changed no record, such as a sign-in.
func (t *Tx) AuditEvent(action string) {
	t.appendAudit(t.newAudit(action))
}

func (t *Tx) newAudit(action string) *AuditEntry {
	e := &AuditEntry{Action: action}
	if t.actor != nil {
		e.Actor, e.Customer = *t.actor, t.actor.Customer
	}
	return e
}

// CountFailure counts a failed sign-in from the actor's address. Its entry is made when its minute
// has passed.
func (t *Tx) CountFailure() {
	minute, address := t.Now/60_000, ""
	if t.actor != nil {
		address = t.actor.Address
	}
	known := auditFailuresTable.first(&t.View, "id", minute, address)
	if known == nil {
		addresses := 0
		auditFailuresTable.each(&t.View, false, func(*AuditFailures) bool {
			addresses++
			return addresses < maxFailing
		}, "id_prefix", minute)
		if addresses == maxFailing {
			address = ""
			known = auditFailuresTable.first(&t.View, "id", minute, address)
		}
	}
	next := AuditFailures{Minute: minute, Address: address, Count: 1}
	if known != nil {
		next.Count += known.Count
	}
	auditFailuresTable.put(t, &next)
}

// FailedSignIn is the action of an entry that sums up the failed sign-ins of a minute from one
// address, or from all.
const FailedSignIn = "sign-in-failed"

// TellFailures records the failures of the minutes that have passed, the oldest first.
func (t *Tx) TellFailures() {
	for told := 0; told < maxFailing; {
		some := t.tellMinute()
		if some == 0 {
			return
		}
		told += some
	}
}

// tellMinute records the failures of the oldest minute, if it has passed, and counts their
// addresses. While many entries wait, it makes one for all of them: strangers must not fill the
// trail, as that would stop what customers do.
func (t *Tx) tellMinute() (addresses int) {
	var over []*AuditFailures
	auditFailuresTable.each(&t.View, false, func(f *AuditFailures) bool {
		if f.Minute >= t.Now/60_000 || len(over) > 0 && f.Minute != over[0].Minute {
			return false
		}
		over = append(over, f)
		return true
	}, "id_prefix")
	for _, f := range over {
		auditFailuresTable.remove(t, f)
	}
	addresses = len(over)
	if addresses > 0 && t.AuditHead().Waiting >= maxWaitingOfStrangers {
		all := AuditFailures{Minute: over[0].Minute}
		for _, f := range over {
			all.Count += f.Count
		}
		over = []*AuditFailures{&all}
	}
	for _, f := range over {
		t.appendAudit(&AuditEntry{Action: FailedSignIn, Count: f.Count,
			FailedFrom: f.Minute * 60_000,
			Actor:      Actor{Address: f.Address}})
	}
	return addresses
}

// DropAudit removes a generation's archived entries from the state, those numbered from to upto. It
// does nothing unless from is the generation's first entry in the state.
func (t *Tx) DropAudit(generation ids.ID, from, upto uint64) {
	head, gone := t.AuditHead(), []*AuditEntry(nil)
	t.AuditFrom(generation, 0, func(e *AuditEntry) bool {
		if len(gone) == 0 && e.Number != from || e.Number > upto {
			return false
		}
		gone = append(gone, e)
		return true
	})
	for _, e := range gone {
		if t.OnPath(e) {
			head.Archived = max(head.Archived, e.Number)
		}
		auditTable.remove(t, e)
	}
	if len(gone) > 0 {
		head.Waiting -= uint32(len(gone))
		auditHeadTable.put(t, &head)
	}
}

// keepAudit takes over the replaced state's entries that the archive may lack, and adds the entries
// of the restore. The first one says what it abandoned. The archive, too, keeps that.
func (f *follower) keepAudit(tx *Tx) {
	if tx.ClusterVersion() < AuditSince {
		return
	}
	head, left := tx.AuditHead(), f.old.AuditHead()
	f.old.EachAudit(func(e *AuditEntry) bool {
		if auditTable.first(&tx.View, "id", e.Generation, e.Number) == nil && !tx.archivedAudit(e) {
			auditTable.put(tx, e)
			head.Waiting++
		}
		return true
	})
	auditHeadTable.put(tx, &head)
	tx.By(f.Actor)
	f.tellCredentials(tx)
	entries := tx.told(Restored)
	if len(entries) == 0 {
		entries = []*AuditEntry{tx.newAudit(Restored)}
	}
	entries[0].Restored = &AuditMark{Generation: f.old.Cluster().generation(),
		Number: left.Number, Hash: left.Hash}
	for _, e := range entries {
		tx.appendAudit(e)
	}
}

// tellCredentials notes what gives access today and not after the restore, and the other way
// round. What the backup has and today's state lacks ended before: its end has been told.
func (f *follower) tellCredentials(tx *Tx) {
	tellEnds(f, tx, keysTable)
	tellEnds(f, tx, accountsTable)
	tellEnds(f, tx, passkeysTable)
	tellEnds(f, tx, grantsTable)
	tellEnds(f, tx, sharesTable)
	tx.notes.all = slices.DeleteFunc(tx.notes.all, func(n noted) bool {
		return n.kind.alwaysTold && n.after == (telling{}) && !f.old.has(n.kind, n.record)
	})
	// one entry for many changes of a customer
	slices.SortStableFunc(tx.notes.all, func(a, b noted) int {
		return strings.Compare(a.owner(), b.owner())
	})
}

// tellEnds notes records that only today's state or only the restored one has.
func tellEnds[R any](f *follower, tx *Tx, tb *table[R]) {
	k := &tb.kind
	tb.each(f.old, false, func(record *R) bool {
		if !tx.has(k, record) {
			tx.noteChange(k, record, nil)
		}
		return true
	}, "id_prefix")
	tb.each(f.mine, false, func(record *R) bool {
		if !f.old.has(k, record) && tx.has(k, record) {
			tx.noteChange(k, nil, record)
		}
		return true
	}, "id_prefix")
}

// Restored is the action of a restore's entries.
const Restored = "restored"

// archivedAudit reports whether an entry is certainly in the archive.
func (v *View) archivedAudit(e *AuditEntry) bool {
	return v.OnPath(e) && e.Number <= v.AuditHead().Archived
}

package state

import (
	"crypto/sha256"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
)

// AuditSince is the first cluster version in which there is an audit trail.
const AuditSince = 2

// Actor is who had a command proposed, as the API knows it. All of its texts are bounded there.
type Actor struct {
	Subject     string `cbor:"1,keyasint,omitempty"` // of a sign-in
	Key         ids.ID `cbor:"2,keyasint,omitzero"`  // the API key, zero for a sign-in
	Admin       bool   `cbor:"3,keyasint,omitempty"` // an admin, or one who acts for a customer
	Customer    string `cbor:"4,keyasint,omitempty"` // whose resources are meant
	Operation   string `cbor:"5,keyasint,omitempty"` // of the API
	Address     string `cbor:"6,keyasint,omitempty"` // of the client
	Correlation string `cbor:"7,keyasint,omitempty"` // id of the call, as the log has it
}

// Name is what actors are looked for by: the subject, or the key's id; "": the cluster itself.
func (a *Actor) Name() string {
	if a.Subject != "" || a.Key.IsZero() {
		return a.Subject
	}
	return a.Key.String()
}

// AuditEntry is a line of the audit trail. It is made by the command that it describes, and nothing
// of it changes any more. It has no secret.
type AuditEntry struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Number     uint64 `cbor:"2,keyasint"` // from 1; it goes on over restores
	// Before is the hash of the entry of the number before, zero of the first.
	Before Hash   `cbor:"3,keyasint"`
	Index  uint64 `cbor:"4,keyasint"` // of the command
	At     int64  `cbor:"5,keyasint"`
	Action string `cbor:"6,keyasint"`
	Actor  Actor  `cbor:"7,keyasint,omitzero"`
	// Customer is whom it is about, "" for nobody.
	Customer string        `cbor:"8,keyasint,omitempty"`
	Changes  []AuditChange `cbor:"9,keyasint,omitempty"`
	// More is how many changes found no room.
	More uint32 `cbor:"10,keyasint,omitempty"`
	// Count is of failed sign-ins that are one entry.
	Count uint32 `cbor:"11,keyasint,omitempty"`
	// FailedFrom is when the minute of those began, in Unix milliseconds; 0: it is of none.
	FailedFrom int64 `cbor:"13,keyasint,omitempty"`
	// Restored is the head that a restore left behind; nil: it was no restore.
	Restored *AuditMark `cbor:"12,keyasint,omitempty"`
}

// AuditChange is a record that a command changed. Before and After are JSON; "": there was none,
// there is none, or nothing of it is told.
type AuditChange struct {
	Table  string `cbor:"1,keyasint"`
	Record string `cbor:"2,keyasint"`
	Before string `cbor:"3,keyasint,omitempty"`
	After  string `cbor:"4,keyasint,omitempty"`
}

// AuditMark names an entry by its place and its hash.
type AuditMark struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Number     uint64 `cbor:"2,keyasint"`
	Hash       Hash   `cbor:"3,keyasint"`
}

// AuditHead is the end of the trail. Entries of the path up to Archived stand in the row store.
type AuditHead struct {
	Number   uint64 `cbor:"1,keyasint"` // of the newest entry, 0: there is none
	Hash     Hash   `cbor:"2,keyasint"`
	Archived uint64 `cbor:"3,keyasint,omitempty"`
	Waiting  uint32 `cbor:"4,keyasint,omitempty"` // entries in the state
}

// AuditFailures are the failed sign-ins of one address in one minute.
type AuditFailures struct {
	Minute  int64  `cbor:"1,keyasint"` // since 1970
	Address string `cbor:"2,keyasint"` // "": of all that found no room
	Count   uint32 `cbor:"3,keyasint"`
}

// maxFailing bounds the addresses whose failed sign-ins of a minute are told apart.
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

// EachAudit visits the entries that the state has, in the order in which they were made, until
// visit returns false. Those that a restore left behind are among them.
func (v *View) EachAudit(visit func(*AuditEntry) bool) {
	auditTable.each(v, false, visit, "order_prefix")
}

// AuditFrom visits the entries of a generation from a number on, until visit returns false.
func (v *View) AuditFrom(generation ids.ID, number uint64, visit func(*AuditEntry) bool) {
	auditTable.from(v, func(e *AuditEntry) bool { return e.Generation == generation && visit(e) },
		"id", generation, number)
}

// OnPath says whether an entry is of this state's past, and not of one that a restore left behind.
func (v *View) OnPath(e *AuditEntry) bool {
	return v.descendsFrom(e.Generation, e.Index, e.Index)
}

// AuditBody is an entry as it is hashed and archived.
func (s *summer) auditBody(e *AuditEntry) []byte {
	body, err := s.codec.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("state: encode an entry of the audit trail: %v", err)) // a plain struct
	}
	return body
}

// appendAudit adds an entry, and gives it its place in the chain.
func (t *Tx) appendAudit(e *AuditEntry) {
	head := t.AuditHead()
	e.Generation = t.Cluster().generation()
	e.Number, e.Before, e.Index, e.At = head.Number+1, head.Hash, t.Index, t.Now
	auditTable.put(t, e)
	head.Number, head.Hash = e.Number, sha256.Sum256(t.store.summer.auditBody(e))
	head.Waiting++
	auditHeadTable.put(t, &head)
}

// By says who has the command proposed, before it changes anything; nil: the cluster by itself.
func (t *Tx) By(actor *Actor) {
	t.actor = actor
	t.byAdmin = actor != nil && actor.Admin
}

// Audit makes an entry of what the command has changed, if the trail tells of that.
func (t *Tx) Audit(action string) {
	if e := t.told(action); e != nil {
		t.appendAudit(e)
	}
}

// AuditEvent makes an entry of what happened to no record, like a sign-in.
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

// CountFailure counts a failed sign-in of the actor's address. Its entry is made when its minute is
// over.
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

// FailedSignIn is the action of the entry that sums a minute's failed sign-ins of an address.
const FailedSignIn = "sign-in-failed"

// TellFailures makes the entries of the minutes that are over.
func (t *Tx) TellFailures() {
	var over []*AuditFailures
	auditFailuresTable.each(&t.View, false, func(f *AuditFailures) bool {
		if f.Minute >= t.Now/60_000 {
			return false
		}
		over = append(over, f)
		return len(over) < maxFailing
	}, "id_prefix")
	for _, f := range over {
		auditFailuresTable.remove(t, f)
		t.appendAudit(&AuditEntry{Action: FailedSignIn, Count: f.Count,
			FailedFrom: f.Minute * 60_000,
			Actor:      Actor{Address: f.Address}})
	}
}

// DropAudit takes the entries of a generation out of the state that the archive has: those from one
// number to another. It changes nothing unless the first is the generation's first in the state.
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

// keepAudit takes over the entries that the replaced state has and the archive may not have, and
// makes that of the restore. What it left behind is so in the archive as well.
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
	e := tx.told(Restored)
	if e == nil {
		e = tx.newAudit(Restored)
	}
	e.Restored = &AuditMark{Generation: f.old.Cluster().generation(), Number: left.Number,
		Hash: left.Hash}
	tx.appendAudit(e)
}

// Restored is the action of the entry that a restore makes.
const Restored = "restored"

// archivedAudit says whether an entry stands in the archive for sure.
func (v *View) archivedAudit(e *AuditEntry) bool {
	return v.OnPath(e) && e.Number <= v.AuditHead().Archived
}

package state

import (
	"crypto/sha256"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// NoticesSince is the first cluster version in which customers get notices.
const NoticesSince = 2

// NoticeKeptMillis is how long a notice is kept.
const NoticeKeptMillis = 90 * 24 * 60 * 60 * 1000

// Notice tells a customer of an event. The command that caused the event makes it.
type Notice struct {
	ID       ids.ID      `cbor:"1,keyasint,omitzero"` // derived from the event: a repeat has the same
	Customer string      `cbor:"2,keyasint,omitempty"`
	Event    model.Event `cbor:"3,keyasint"`
	At       int64       `cbor:"4,keyasint,omitempty"` // when it happened
	Made     uint64      `cbor:"5,keyasint"`           // Raft index of the command: the order of the list
	Read     bool        `cbor:"6,keyasint,omitempty"`
	Subject  ids.ID      `cbor:"7,keyasint,omitzero"`   // the run or the key concerned
	Scraper  ids.ID      `cbor:"8,keyasint,omitzero"`   // of the run
	Name     string      `cbor:"9,keyasint,omitempty"`  // of the scraper, the key, or the cap
	Message  string      `cbor:"10,keyasint,omitempty"` // why the run failed, or the plan
	Pages    uint64      `cbor:"11,keyasint,omitempty"` // of the run, as its job counts them
	Items    uint64      `cbor:"12,keyasint,omitempty"` // rows of the run
	Errors   uint32      `cbor:"13,keyasint,omitempty"` // links of the run that failed
	Micros   int64       `cbor:"14,keyasint,omitempty"` // charged or paid in, or the balance
	// Count is the number of notices that MORE_NOTICES stands for, or the usage in
	// QUOTA_NEAR_LIMIT.
	Count uint64 `cbor:"15,keyasint,omitempty"`
	Most  uint64 `cbor:"16,keyasint,omitempty"` // in QUOTA_NEAR_LIMIT: how many the plan allows
	// Changes is what changed, in RUN_CHANGED; nil: the runs were not compared, see Message.
	Changes *RunChanges `cbor:"17,keyasint,omitempty" since:"2"`
}

// NoticeID is the id of an event about a subject. It takes its time from the subject, so that a
// repeat after a restore has the same id.
func NoticeID(event model.Event, customer string, subject ids.ID, index uint64) ids.ID {
	sum := sha256.Sum256(key(string(event), customer, subject, index))
	id := subject
	copy(id[4:], sum[:])
	return id
}

// Inbox sums up a customer's notices.
type Inbox struct {
	Customer string `cbor:"1,keyasint"`
	Notices  uint32 `cbor:"2,keyasint,omitempty"`
	Unread   uint32 `cbor:"3,keyasint,omitempty"`
	// Fold is the unread notice that counts those without room; zero: there is none.
	Fold ids.ID `cbor:"4,keyasint,omitzero"`
	// Preferences lists those that the customer has set, by event, ascending.
	Preferences []Preference `cbor:"5,keyasint,omitempty"`
	// Mails lists when the newest e-mail of each event was due, by event, ascending.
	Mails []MailTime `cbor:"6,keyasint,omitempty"`
}

// MailTime is when an e-mail of an event was first due.
type MailTime struct {
	Event model.Event `cbor:"1,keyasint"`
	At    int64       `cbor:"2,keyasint"`
}

// Preference is how a customer wants to be told of an event.
type Preference struct {
	Event model.Event            `cbor:"1,keyasint"`
	How   model.NoticePreference `cbor:"2,keyasint"`
}

var inboxesTable = define(NoticesSince, "inboxes",
	index("id", true, func(i *Inbox) []any { return []any{i.Customer} })).told((*Inbox).telling)

// Inbox returns a copy, which may be changed. It is empty if the customer has none.
func (v *View) Inbox(customer string) Inbox {
	known := inboxesTable.first(v, "id", customer)
	if known == nil {
		return Inbox{Customer: customer}
	}
	inbox := *known
	inbox.Preferences, inbox.Mails = slices.Clone(known.Preferences), slices.Clone(known.Mails)
	return inbox
}

// PutInbox adds or replaces an inbox.
func (t *Tx) PutInbox(i Inbox) { inboxesTable.put(t, &i) }

func (i *Inbox) find(event model.Event) (at int, found bool) {
	return slices.BinarySearchFunc(i.Preferences, event, func(p Preference, event model.Event) int {
		return strings.Compare(string(p.Event), string(event))
	})
}

// Preference returns the customer's preference, or else the event's default.
func (i *Inbox) Preference(event model.Event) model.NoticePreference {
	if at, found := i.find(event); found {
		return i.Preferences[at].How
	}
	return event.Preference()
}

// Prefer sets a preference.
func (i *Inbox) Prefer(p Preference) {
	at, found := i.find(p.Event)
	if !found {
		i.Preferences = slices.Insert(i.Preferences, at, p)
	}
	i.Preferences[at] = p
}

func (i *Inbox) findMail(event model.Event) (at int, found bool) {
	return slices.BinarySearchFunc(i.Mails, event, func(m MailTime, event model.Event) int {
		return strings.Compare(string(m.Event), string(event))
	})
}

// MailedAt returns when the newest e-mail of an event was first due; 0: there was none.
func (i *Inbox) MailedAt(event model.Event) int64 {
	if at, found := i.findMail(event); found {
		return i.Mails[at].At
	}
	return 0
}

// Mailed notes when the newest e-mail of an event is due.
func (i *Inbox) Mailed(event model.Event, due int64) {
	at, found := i.findMail(event)
	if !found {
		i.Mails = slices.Insert(i.Mails, at, MailTime{Event: event})
	}
	i.Mails[at].At = due
}

// Add counts a notice that is added.
func (i *Inbox) Add(n *Notice) {
	i.Notices++
	if !n.Read {
		i.Unread++
	}
}

// Drop forgets a notice that is removed.
func (i *Inbox) Drop(n *Notice) {
	i.Notices--
	if !n.Read {
		i.Unread--
	}
	if n.ID == i.Fold {
		i.Fold = ids.ID{}
	}
}

package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// MailedNotices is how many of its notices an e-mail shows. It only counts the others.
const MailedNotices = 10

// Mail is an e-mail to be sent: the notices of one event that a customer gets together.
type Mail struct {
	ID       ids.ID      `cbor:"1,keyasint"` // of its first notice
	Customer string      `cbor:"2,keyasint"`
	Event    model.Event `cbor:"3,keyasint"`
	Notices  []Notice    `cbor:"4,keyasint"` // the first MailedNotices
	Count    uint64      `cbor:"5,keyasint"` // of all its notices
	At       int64       `cbor:"6,keyasint"` // when it may be sent, or tried again
	// Taken says that a sender has read it. From then on it does not change, so that a repeat is
	// the same e-mail.
	Taken bool   `cbor:"7,keyasint,omitempty"`
	Tries uint32 `cbor:"8,keyasint,omitempty"` // failed attempts
}

var mailsTable = define(NoticesSince, "mails",
	index("id", true, func(m *Mail) []any { return []any{m.ID} }),
	index("of", true, func(m *Mail) []any {
		return []any{m.Customer, string(m.Event), m.Taken}
	}),
	index("due", true, func(m *Mail) []any { return []any{m.At, m.ID} }),
).untold()

// Mail returns the e-mail with an id, or nil.
func (v *View) Mail(id ids.ID) *Mail { return mailsTable.first(v, "id", id) }

// MailOf returns a customer's e-mail of an event, taken or not, or nil. There is at most one of
// each.
func (v *View) MailOf(customer string, event model.Event, taken bool) *Mail {
	return mailsTable.first(v, "of", customer, string(event), taken)
}

// MailsDue visits all e-mails, by due time, until visit returns false.
func (v *View) MailsDue(visit func(*Mail) bool) { mailsTable.each(v, false, visit, "due_prefix") }

// PutMail adds or replaces an e-mail.
func (t *Tx) PutMail(m *Mail) { mailsTable.put(t, m) }

// RemoveMail removes an e-mail.
func (t *Tx) RemoveMail(m *Mail) { mailsTable.remove(t, m) }

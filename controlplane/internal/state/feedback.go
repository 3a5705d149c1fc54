package state

import "shoal.dev/shoal/pkg/ids"

// FeedbackSince is the first cluster version in which customers give feedback.
const FeedbackSince = 2

// Feedback is a message from a customer to the operators.
type Feedback struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Text     string `cbor:"3,keyasint"`
	At       int64  `cbor:"4,keyasint"` // Unix milliseconds
}

var feedbackTable = define(FeedbackSince, "feedback",
	index("id", true, func(f *Feedback) []any { return []any{f.ID} }),
	index("customer", true, func(f *Feedback) []any { return []any{f.Customer, f.At, f.ID} }),
	index("age", true, func(f *Feedback) []any { return []any{f.At, f.ID} }),
).told((*Feedback).telling)

// telling leaves the text out, because it may identify a person.
func (f *Feedback) telling() telling {
	return telling{f.Customer, struct {
		At int64 `json:"createdAt"`
	}{f.At}}
}

// Feedback returns the message with an id, or nil.
func (v *View) Feedback(id ids.ID) *Feedback { return feedbackTable.first(v, "id", id) }

// AllFeedback returns the number of all customers' messages.
func (v *View) AllFeedback() int { return feedbackTable.count(v, "id") }

// NewestFeedback visits all customers' messages, the newest first, until visit returns false.
func (v *View) NewestFeedback(visit func(*Feedback) bool) {
	feedbackTable.each(v, true, visit, "age_prefix")
}

// OldestFeedback visits all customers' messages, the oldest first, until visit returns false.
func (v *View) OldestFeedback(visit func(*Feedback) bool) {
	feedbackTable.each(v, false, visit, "age_prefix")
}

// FeedbackOf lists a customer's messages, the oldest first.
func (v *View) FeedbackOf(customer string) []*Feedback {
	return feedbackTable.all(v, "customer_prefix", customer)
}

// PutFeedback adds or replaces a message.
func (t *Tx) PutFeedback(f *Feedback) { feedbackTable.put(t, f) }

// RemoveFeedback removes a message.
func (t *Tx) RemoveFeedback(f *Feedback) { feedbackTable.remove(t, f) }

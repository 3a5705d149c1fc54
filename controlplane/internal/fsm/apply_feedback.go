package fsm

import (
	"unicode/utf8"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of feedback. A text has at most 16 KB, so one customer has 3 MB and all have 160 MB.
const (
	maxFeedbackADay    = 10 // per customer and UTC day
	maxFeedback        = 200
	maxFeedbackInTotal = 10_000
	maxFeedbackText    = 4_000 // characters
	feedbackKeptMillis = 400 * dayMillis
)

func giveFeedback(tx *state.Tx, p command.GiveFeedbackPayload) (command.GivenFeedback, error) {
	if known := tx.Feedback(p.ID); known != nil {
		return command.GivenFeedback{ID: known.ID, At: known.At}, nil
	}
	switch customer := tx.Customer(p.Customer); {
	case customer == nil:
		return command.GivenFeedback{}, fault.New(fault.Unauthorized, "the customer does not exist")
	case customer.Removed():
		return command.GivenFeedback{}, errRemoved()
	case p.Text == "" || utf8.RuneCountInString(p.Text) > maxFeedbackText:
		return command.GivenFeedback{}, fault.Invalid(fault.InvalidRequest, "text",
			"must have 1 to %d characters", maxFeedbackText)
	}
	own, today := tx.FeedbackOf(p.Customer), 0
	for _, f := range own {
		if f.At/dayMillis == tx.Now/dayMillis {
			today++
		}
	}
	if today >= maxFeedbackADay {
		return command.GivenFeedback{}, fault.New(fault.FeedbackLimit, "a customer gives feedback "+
			"%d times a day at most; come again tomorrow (UTC)", maxFeedbackADay)
	}
	for ; len(own) >= maxFeedback; own = own[1:] {
		tx.RemoveFeedback(own[0])
	}
	makeRoomForFeedback(tx)
	tx.PutFeedback(&state.Feedback{ID: p.ID, Customer: p.Customer, Text: p.Text, At: tx.Now})
	return command.GivenFeedback{ID: p.ID, At: tx.Now}, nil
}

// makeRoomForFeedback drops the oldest messages of all customers until one more fits.
func makeRoomForFeedback(tx *state.Tx) {
	for tx.AllFeedback() >= maxFeedbackInTotal {
		var oldest *state.Feedback
		tx.OldestFeedback(func(f *state.Feedback) bool { oldest = f; return false })
		tx.RemoveFeedback(oldest)
	}
}

// dropFeedback removes a customer's messages, since they may identify the person.
func dropFeedback(tx *state.Tx, customer string) {
	for _, f := range tx.FeedbackOf(customer) {
		tx.RemoveFeedback(f)
	}
}

// expireFeedback removes old messages, a bounded number at a time.
func expireFeedback(tx *state.Tx) {
	var old []*state.Feedback
	tx.OldestFeedback(func(f *state.Feedback) bool {
		if f.At > tx.Now-feedbackKeptMillis || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, f)
		return true
	})
	for _, f := range old {
		tx.RemoveFeedback(f)
	}
}

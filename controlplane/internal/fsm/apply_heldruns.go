package fsm

import (
	"fmt"
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// maxHeldRuns bounds a customer's runs that are held back.
const maxHeldRuns = 1_000

// holds says whether an ended run is to be held back: it is complete and odd, and its group wants
// that. Without room for one more, the run fails, so that it never counts. A run that could not be
// judged says so in its message.
func holds(tx *state.Tx, job *state.Job, v command.Verdict) bool {
	group := tx.Group(job.Group)
	if job.State != model.Completed || group == nil || !group.Quarantine {
		return false
	}
	if v.Odd == "" {
		job.Message = whyCut(v.Unjudged)
		return false
	}
	if roomToHold(tx, job.Customer) {
		return true
	}
	job.State, job.Message = model.Failed, whyCut(fmt.Sprintf("it is unlike earlier runs, and %d "+
		"runs are held back already: %s", maxHeldRuns, v.Odd))
	return false
}

// roomToHold says whether one more run of a customer can be held back. If there are too many, it
// drops those without rows: their scraper is gone, or they have expired.
func roomToHold(tx *state.Tx, customer string) bool {
	held := tx.HeldRunsOf(customer)
	if len(held) < maxHeldRuns {
		return true
	}
	since := int64(0)
	for _, item := range tx.WorkOf(work.Expire, "") {
		since = max(since, rowstore.ReadExpiry(item.Progress))
	}
	room := false
	for _, run := range held {
		if tx.Scraper(run.Scraper) == nil || run.At*1000 < since {
			tx.RemoveHeldRun(run)
			room = true
		}
	}
	return room
}

// whyCut cuts a reason to the bytes that are kept of it.
func whyCut(why string) string {
	return strings.ToValidUTF8(why[:min(len(why), command.MaxWhy)], "")
}

// conclude holds an ended run back, or tells that it ended.
func conclude(tx *state.Tx, job *state.Job, held bool, why string) {
	switch {
	case held:
		run := &state.HeldRun{Job: job.ID, Customer: job.Customer, Scraper: job.Scraper,
			Why: whyCut(why), At: tx.Now, Pages: job.Pages, Items: job.Items, Errors: job.Errors,
			Micros: job.Charged}
		tx.PutHeldRun(run)
		notifyHeld(tx, run, model.RunAnomaly, run.Why)
	case job.State != model.Stopped:
		NotifyRun(tx, job)
		watchEnded(tx, job)
	}
}

func releaseRun(tx *state.Tx, p command.ReleaseRunPayload) (command.None, error) {
	if held := tx.HeldRun(p.Job); held != nil && held.Customer == p.Customer {
		tx.RemoveHeldRun(held)
		notifyHeld(tx, held, model.RunCompleted, "")
		watchRun(tx, held.Customer, held.Job, held.Scraper)
	}
	return command.None{}, nil
}

// notifyHeld notifies the customer of a run that is held back, or completed by its release. By then
// the run may have left the state.
func notifyHeld(tx *state.Tx, held *state.HeldRun, event model.Event, message string) {
	n := state.Notice{ID: state.NoticeID(event, held.Customer, held.Job, 0),
		Customer: held.Customer, Event: event, Subject: held.Job, Scraper: held.Scraper,
		Message: message, Pages: held.Pages, Items: held.Items, Errors: held.Errors,
		Micros: held.Micros}
	if scraper := tx.Scraper(held.Scraper); scraper != nil {
		n.Name = scraper.Spec.Name
	}
	notify(tx, n)
}

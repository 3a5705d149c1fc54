package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/model"
)

// maxHeldRuns bounds a customer's runs that are held back. Beyond it, the longest held one is
// released: its rows have expired, or its customer does not look.
const maxHeldRuns = 1_000

// hold holds a complete run back, if its group wants that. It reports whether it did.
func hold(tx *state.Tx, job *state.Job, why string) bool {
	group := tx.Group(job.Group)
	if why == "" || job.State != model.Completed || group == nil || !group.Quarantine {
		return false
	}
	if held := tx.HeldRunsOf(job.Customer); len(held) >= maxHeldRuns {
		tx.RemoveHeldRun(held[0])
	}
	tx.PutHeldRun(&state.HeldRun{Job: job.ID, Customer: job.Customer, Scraper: job.Scraper,
		Why: strings.ToValidUTF8(why[:min(len(why), command.MaxWhy)], ""), At: tx.Now})
	return true
}

func releaseRun(tx *state.Tx, p command.ReleaseRunPayload) (command.None, error) {
	if held := tx.HeldRun(p.Job); held != nil && held.Customer == p.Customer {
		tx.RemoveHeldRun(held)
		watchRun(tx, held.Customer, held.Job, held.Scraper)
	}
	return command.None{}, nil
}

// notifyHeld notifies the customer of a run that is held back.
func notifyHeld(tx *state.Tx, job *state.Job) {
	n := state.Notice{ID: state.NoticeID(model.RunAnomaly, job.Customer, job.ID, 0),
		Customer: job.Customer, Event: model.RunAnomaly, Subject: job.ID, Scraper: job.Scraper,
		Message: tx.HeldRun(job.ID).Why, Pages: job.Pages, Items: job.Items, Errors: job.Errors,
		Micros: job.Charged}
	if scraper := tx.Scraper(job.Scraper); scraper != nil {
		n.Name = scraper.Spec.Name
	}
	notify(tx, n)
}

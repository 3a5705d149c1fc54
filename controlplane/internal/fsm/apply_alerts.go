package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// maxAlertWork bounds a customer's runs that wait to be compared. Beyond it changes are not
// reported: the customer has thousands of unread notices.
const maxAlertWork = 1_000

// checkAlerts refuses alerts beyond the bounds.
func checkAlerts(a *state.Alerts) error {
	if a == nil {
		return nil
	}
	if len(a.On) == 0 || len(a.On) > command.MaxAlertKinds {
		return fault.Invalid(fault.InvalidRequest, "changeAlerts", "at most %d are allowed",
			command.MaxAlertKinds)
	}
	if len(a.Key) > command.MaxAlertKey {
		return fault.Invalid(fault.InvalidRequest, "changeAlertsKey", "at most %d are allowed",
			command.MaxAlertKey)
	}
	return nil
}

// watchRun has a run compared with the one before, if its group wants that. It is called when a run
// begins to count.
func watchRun(tx *state.Tx, customer string, job, scraper ids.ID) {
	of := tx.Scraper(scraper)
	if of == nil || of.Customer != customer || tx.ClusterVersion() < state.AlertsSince {
		return
	}
	id := state.AlertID(customer, job)
	group := tx.Group(of.Group)
	if group == nil || group.Alerts == nil || tx.WorkItem(id) != nil ||
		tx.Notice(customer, id) != nil ||
		len(tx.WorkOf(work.Changes, customer)) >= maxAlertWork {
		return
	}
	tx.PutWork(&state.Work{ID: id, Kind: work.Changes, Customer: customer, Args: job[:],
		State: state.WorkReady, At: tx.Now, Created: tx.Now, Advanced: tx.Now})
}

// watchEnded calls watchRun for an ended run that is complete and not a trial.
func watchEnded(tx *state.Tx, job *state.Job) {
	if job.State == model.Completed && !job.Trial() {
		watchRun(tx, job.Customer, job.ID, job.Scraper)
	}
}

func tellChanges(tx *state.Tx, p command.TellChangesPayload) (command.None, error) {
	id := state.AlertID(p.Customer, p.Job)
	item := tx.WorkItem(id)
	if item == nil || item.Customer != p.Customer {
		return command.None{}, nil
	}
	tx.RemoveWork(item)
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return command.None{}, nil
	}
	n := state.Notice{ID: id, Customer: p.Customer, Event: model.RunChanged, Subject: p.Job,
		Scraper: p.Scraper, Name: scraper.Spec.Name, Message: alertText(p.Message)}
	if p.Message == "" {
		changes := p.Changes
		changes.Examples = nil
		changes.Key = changes.Key[:min(len(changes.Key), command.MaxAlertKey)]
		for _, text := range p.Changes.Examples[:min(len(p.Changes.Examples),
			command.MaxAlertExamples)] {
			changes.Examples = append(changes.Examples, alertText(text))
		}
		n.Changes = &changes
	}
	notify(tx, n)
	return command.None{}, nil
}

// alertText cuts a text to the bytes that a notice keeps.
func alertText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), command.MaxAlertText)], "")
}

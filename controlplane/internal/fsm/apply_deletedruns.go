package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	maxDeletedRuns   = 10_000 // of a customer; reads of the history name all of them
	maxForgottenRuns = 1_000  // per command
)

// cascadeOfRun returns what deleting a run's rows takes along. If the run has left the state, the
// proposer has checked its owner.
func cascadeOfRun(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	job, run := tx.Job(d.Target), d.Run
	if run == nil || tx.DeletedRun(d.Target) != nil ||
		job != nil && (job.Customer != d.Customer || job.Trial()) {
		return state.Cascade{}, fault.Invalid(fault.JobNotFound, "scraperJobStatusId",
			"there is no such job")
	}
	cascade := state.Cascade{Name: d.Target.String(), Type: "RUN"}
	if scraper := tx.Scraper(run.Scraper); scraper != nil && scraper.Customer == d.Customer {
		cascade.Name = scraper.Spec.Name
	}
	open, dependants := 0, []ids.ID{d.Target}
	if job != nil && !job.Closed {
		open, dependants = 1, append(dependants, job.Scraper)
	}
	cascade.Counts = []state.Count{{Name: "openRuns", N: open}, {Name: "rows", N: int(d.Rows)}}
	cascade.Digest = digest(dependants) ^ uint64(d.Rows)
	return cascade, nil
}

func deleteRun(tx *state.Tx, p command.DeleteRunPayload) (command.None, error) {
	if len(tx.DeletedRunsOf(p.Deletion.Customer)) >= maxDeletedRuns {
		return command.None{}, fault.New(fault.LimitReached,
			"the history has %d runs whose rows were deleted; older ones leave it with time",
			maxDeletedRuns)
	}
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	run := *p.Deletion.Run
	if tx.DeletedRun(run.Next) != nil {
		return command.None{}, fault.New(fault.CascadeDrift, "another run's rows were deleted "+
			"meanwhile; ask for another preview")
	}
	if job := tx.Job(p.Deletion.Target); job != nil {
		run.Group, run.Scraper = job.Group, job.Scraper
		if !job.Ended() {
			endRun(tx, job, model.StoppedByCustomer)
		}
	}
	if known := tx.Scraper(run.Scraper); known != nil && known.Past.Shows(p.Deletion.Target) {
		scraper := *known
		scraper.Past = known.Past.Show(&state.Job{ID: run.Next, Group: run.NextGroup,
			Queued: run.NextQueued}, known.Group)
		tx.PutScraper(&scraper)
	}
	if held := tx.HeldRun(p.Deletion.Target); held != nil {
		tx.RemoveHeldRun(held)
	}
	tx.PutDeletedRun(&state.DeletedRun{Job: p.Deletion.Target, Customer: p.Deletion.Customer,
		Group: run.Group, At: tx.Now})
	return command.None{}, nil
}

func noteRowsRemoved(tx *state.Tx, p command.NoteRowsRemovedPayload) (command.None, error) {
	for _, job := range p.Jobs {
		if known := tx.DeletedRun(job); known != nil && known.Removed == 0 {
			removed := *known
			removed.Removed = tx.Now
			tx.PutDeletedRun(&removed)
		}
	}
	return command.None{}, nil
}

func forgetDeletedRuns(tx *state.Tx, p command.ForgetDeletedRunsPayload) (command.None, error) {
	var old []*state.DeletedRun
	tx.DeletedByAge(func(d *state.DeletedRun) bool {
		if d.Removed >= p.Before || len(old) == maxForgottenRuns {
			return false
		}
		old = append(old, d)
		return true
	})
	for _, d := range old {
		tx.RemoveDeletedRun(d)
	}
	return command.None{}, nil
}

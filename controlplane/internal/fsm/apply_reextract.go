package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// reExtractRevision is the revision of the recipe that is stored under a run's own id.
const reExtractRevision = 1

// beginReExtract makes a run of kept bodies.
func beginReExtract(tx *state.Tx, p command.BeginReExtractPayload) (command.Launched, error) {
	none := command.Launched{}
	if job := tx.Job(p.Job); job != nil {
		return launchedReExtract(job), nil
	}
	if err := roomForImport(tx, p.Customer); err != nil {
		return none, err
	}
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return none, fault.Invalid(fault.ScraperNotFound, "id", "no scraper has this id")
	}
	if scraper.Spec.Type == model.File {
		return none, fault.Invalid(fault.TypeNotRunnable, "id", "the scraper's rows are of files")
	}
	if tx.DeletedRun(p.From) != nil { // background work removes its bodies
		return none, fault.Invalid(fault.JobNotFound, "jobId", "the run's rows were deleted")
	}
	for _, job := range tx.OpenJobsOf(scraper.ID) {
		if !job.State.Final() {
			return none, fault.New(fault.ScraperAlreadyRunning,
				"job %s of this scraper is still running", job.ID)
		}
	}
	prices := tx.CurrentPrices()
	if prices == nil {
		return none, fault.New(fault.Unauthorized, "the customer has no wallet")
	}
	job := &state.Job{ID: p.Job, Customer: p.Customer, Group: scraper.Group, Scraper: scraper.ID,
		Revision: scraper.Revision, Links: p.Links, State: model.Running, Queued: tx.Now,
		Started: tx.Now, Prices: prices.Version, Index: tx.Index, MaxPages: 1, Rest: true,
		File: true}
	tx.PutJob(job)
	tx.PutRecipe(&state.Recipe{Scraper: p.Job, Revision: reExtractRevision, Recipe: p.Recipe})
	tx.PutImport(&state.Import{Job: p.Job, Customer: p.Customer, Group: scraper.Group,
		Scraper: scraper.ID, Begun: tx.Now, Advanced: tx.Now, Before: scraper.LastJob,
		From: p.From})
	tx.PutWork(&state.Work{ID: p.Job, Kind: work.ReExtract, Customer: p.Customer,
		State: state.WorkReady, At: tx.Now, Created: tx.Now, Advanced: tx.Now})
	latest := *tx.Scraper(scraper.ID)
	latest.LastJob = p.Job
	tx.PutScraper(&latest)
	return launchedReExtract(job), nil
}

func launchedReExtract(job *state.Job) command.Launched {
	return command.Launched{Job: job.ID, Scraper: job.Scraper, Links: job.Links,
		State: job.State, Queued: job.Queued}
}

// note writes the counts of a run's pages.
func note(job *state.Job, done command.ReExtracted) {
	job.Success, job.Errors, job.Items = done.Success, done.Errors, done.Items
	job.Pages, job.Delivered = done.Pages, done.Delivered
}

func advanceReExtract(tx *state.Tx, p command.AdvanceReExtractPayload) (command.None, error) {
	job, known := tx.Job(p.Job), tx.Import(p.Job)
	if job == nil || known == nil || known.From.IsZero() || job.Ended() ||
		p.Done.Success+p.Done.Errors <= job.Success+job.Errors {
		return command.None{}, nil
	}
	advanced := *job
	note(&advanced, p.Done)
	advanced.Index = tx.Index
	tx.PutJob(&advanced)
	moved := *known
	moved.Advanced = tx.Now
	tx.PutImport(&moved)
	return command.None{}, nil
}

// endReExtract ends a run of kept bodies. A run without a delivered page fails and keeps its
// counts.
func endReExtract(tx *state.Tx, p command.EndReExtractPayload) (command.None, error) {
	job, known := tx.Job(p.Job), tx.Import(p.Job)
	if job == nil || known == nil || known.From.IsZero() || job.Ended() {
		return command.None{}, nil
	}
	if p.Message != "" {
		failImport(tx, job, known, p.Message)
		return command.None{}, nil
	}
	ended := *job
	note(&ended, p.Done)
	ended.State = model.Completed
	if ended.Delivered == 0 && ended.Errors > 0 {
		ended.State, ended.Message = model.Failed, "no page was delivered"
	}
	held := holds(tx, &ended, command.Verdict{Odd: p.Odd, Unjudged: p.Unjudged})
	closeImport(tx, &ended, known, nil)
	conclude(tx, &ended, held, p.Odd)
	return command.None{}, nil
}

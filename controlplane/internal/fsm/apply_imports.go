package fsm

import (
	"slices"
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// beginImport makes a run from a file's rows. It needs neither money nor a list.
func beginImport(tx *state.Tx, p command.BeginImportPayload) (command.BegunImport, error) {
	none := command.BegunImport{}
	if job := tx.Job(p.Job); job != nil {
		begun := command.BegunImport{Job: job.ID, Scraper: job.Scraper}
		if known := tx.Import(job.ID); known != nil {
			begun.Key = known.Key
		}
		return begun, nil
	}
	if err := roomForImport(tx, p.Customer); err != nil {
		return none, err
	}
	scraper, err := importedScraper(tx, &p)
	if err != nil {
		return none, err
	}
	if tx.CurrentPrices() == nil {
		return none, fault.New(fault.Unauthorized, "the customer has no wallet")
	}
	protected := p.NewScraper == nil && tx.Protects(&scraper)
	switch known := scraper.Protection; {
	case max(len(p.Key), len(p.Asked)) > command.MaxKeyColumn:
		return none, fault.Invalid(fault.InvalidRequest, "keyColumn", "has at most %d bytes",
			command.MaxKeyColumn)
	case protected && p.Key == "" && (known == nil || known.Key == ""):
		return none, fault.Invalid(fault.KeyColumnRequired, "keyColumn",
			"names the column that tells rows apart: the scraper is protected")
	}
	if err := idle(tx, scraper.ID); err != nil {
		return none, err
	}
	if p.NewScraper != nil {
		saveNew(tx, &scraper, p.NewScraper)
	}
	key := ""
	if protected {
		key = fixed(tx, scraper.ID, p.Key)
	}
	openImport(tx, &scraper, &state.Import{Job: p.Job, Format: p.Format, Bytes: p.Bytes,
		Heavy: p.Heavy || protected, Key: key, Asked: p.Asked}, &state.Work{Kind: work.Import})
	return command.BegunImport{Job: p.Job, Scraper: scraper.ID, Key: key}, nil
}

// idle refuses a scraper with an advancing run under way. It fails stuck runs.
func idle(tx *state.Tx, scraper ids.ID) error {
	open := tx.OpenJobsOf(scraper)
	for _, job := range open {
		if !tx.Stuck(job.ID, tx.Now) {
			return fault.New(fault.AlreadyRunning,
				"job %s of this scraper is importing a file", job.ID)
		}
	}
	for _, job := range open {
		failImport(tx, job, tx.Import(job.ID), "it did not come on, and another one was begun")
	}
	return nil
}

// openImport makes a run whose rows an item of work stores. The scraper must be written already.
func openImport(tx *state.Tx, scraper *state.Scraper, known *state.Import, item *state.Work) {
	tx.PutJob(&state.Job{ID: known.Job, Customer: scraper.Customer, Group: scraper.Group,
		Scraper: scraper.ID, Revision: scraper.Revision, State: model.Running, Queued: tx.Now,
		Started: tx.Now, Prices: tx.CurrentPrices().Version, Index: tx.Index, MaxPages: 1,
		File: true})
	known.Customer, known.Group, known.Scraper = scraper.Customer, scraper.Group, scraper.ID
	known.Begun, known.Advanced, known.Before = tx.Now, tx.Now, scraper.LastJob
	tx.PutImport(known)
	item.ID, item.Customer, item.State = known.Job, scraper.Customer, state.WorkReady
	item.At, item.Created, item.Advanced = tx.Now, tx.Now, tx.Now
	tx.PutWork(item)
	latest := *tx.Scraper(scraper.ID)
	latest.LastJob = known.Job
	tx.PutScraper(&latest)
	tx.CountLaunch(scraper.Customer, tx.Now/dayMillis)
}

// roomForImport refuses an upload for which the customer, or the service, has no room.
func roomForImport(tx *state.Tx, customer string) error {
	known := tx.Customer(customer)
	switch {
	case known == nil || known.Blocked():
		return fault.New(fault.CustomerBlocked, "an admin has blocked this customer: it uploads "+
			"no files")
	case tx.IsShort():
		return errShort()
	}
	return command.RoomForImport(&tx.View, customer)
}

// importedScraper returns an upload's scraper, checked and not yet written.
func importedScraper(tx *state.Tx, p *command.BeginImportPayload) (state.Scraper, error) {
	if p.NewScraper != nil {
		return checkScraper(tx, p.NewScraper)
	}
	scraper := tx.Scraper(p.Scraper)
	switch {
	case scraper == nil || scraper.Customer != p.Customer:
		return state.Scraper{}, fault.Invalid(fault.ScraperNotFound, "scraperId",
			"no scraper has this id")
	case scraper.Spec.Type != model.File:
		return state.Scraper{}, fault.Invalid(fault.InvalidRequest, "scraperId",
			"the scraper is not of the type FILE")
	case tx.Internal(scraper):
		return state.Scraper{}, errInternal("scraperId")
	}
	return *scraper, nil
}

func advanceImport(tx *state.Tx, p command.AdvanceImportPayload) (command.None, error) {
	job := tx.Job(p.Job)
	if job == nil || !job.File || job.Ended() || p.Items <= job.Items {
		return command.None{}, nil
	}
	advanced := *job
	advanced.Items, advanced.Index = p.Items, tx.Index
	tx.PutJob(&advanced)
	known := *tx.Import(p.Job)
	known.Advanced = tx.Now
	tx.PutImport(&known)
	return command.None{}, nil
}

// endImport ends an upload that is complete or has failed.
func endImport(tx *state.Tx, p command.EndImportPayload) (command.None, error) {
	job, known := tx.Job(p.Job), tx.Import(p.Job)
	if job == nil || known == nil || job.Ended() {
		return command.None{}, nil
	}
	if p.Message != "" {
		failImport(tx, job, known, p.Message)
		dropUnmerged(tx, job)
		return command.None{}, nil
	}
	if p.Key != known.Key {
		return command.None{}, nil
	}
	scraper := tx.Scraper(job.Scraper)
	if known.Key == "" && tx.Protects(scraper) && !tx.Internal(scraper) {
		failImport(tx, job, known, "the scraper was protected meanwhile; send the file again")
		return command.None{}, nil
	}
	hiding := *known
	if scraper != nil && len(p.Hides) > 0 {
		hiding.Elsewhere = slices.DeleteFunc(tx.GroupsOf(scraper),
			func(group ids.ID) bool { return group == job.Group })
	}
	if known.Key != "" && deletedMeanwhile(tx, &hiding, p.Hides) {
		failImport(tx, job, known, "rows of the scraper were deleted meanwhile; send the file again")
		return command.None{}, nil
	}
	ended := *job
	ended.State, ended.Items = model.Completed, p.Items
	closeImport(tx, &ended, &hiding, p.Hides[:min(len(p.Hides), command.MaxHidden)])
	for _, id := range hiding.Elsewhere { // cursors of these groups would miss rows
		noteRemoval(tx, id)
	}
	if scraper != nil {
		filled := *scraper
		filled.Filled = true
		if known.Key != "" && scraper.Protection != nil {
			protection := *scraper.Protection
			protection.Run = job.ID
			filled.Protection = &protection
		}
		tx.PutScraper(&filled)
	}
	NotifyRun(tx, &ended)
	if known.Key == "" { // a protected upload adds to the same run
		watchEnded(tx, &ended)
	}
	return command.None{}, nil
}

// deletedMeanwhile says whether rows that an upload has added to were deleted since it began.
func deletedMeanwhile(tx *state.Tx, known *state.Import, runs []ids.ID) bool {
	return slices.ContainsFunc(runs, func(run ids.ID) bool {
		return tx.DeletedRun(run) != nil
	}) || slices.ContainsFunc(known.Elsewhere, func(group ids.ID) bool {
		deleted := tx.DeletedGroup(group)
		return deleted != nil && deleted.Rows && deleted.At >= known.Begun
	})
}

// noteRemoval notes that a group has lost rows.
func noteRemoval(tx *state.Tx, id ids.ID) {
	if group := tx.Group(id); group != nil {
		changed := *group
		changed.RowsRemoved = tx.Now
		tx.PutGroup(&changed)
	}
}

// failImport fails an upload, and keeps only the reason.
func failImport(tx *state.Tx, job *state.Job, known *state.Import, message string) {
	ended := *job
	ended.State, ended.Items = model.Failed, 0
	ended.Message = strings.ToValidUTF8(command.MessageOfImport(message), "")
	closeImport(tx, &ended, known, []ids.ID{job.ID})
	NotifyRun(tx, &ended)
}

func putUploadLimits(tx *state.Tx, p command.PutUploadLimitsPayload) (state.Customer, error) {
	known := tx.Customer(p.Customer)
	if known == nil {
		return state.Customer{}, fault.Invalid(fault.NotFound, "ref",
			"no customer has this reference")
	}
	if min(p.Bytes, p.Sheet) < 0 || max(p.Bytes, p.Sheet) > command.MaxUploadBytes {
		return state.Customer{}, fault.Invalid(fault.InvalidRequest, "maxBytes",
			"must be at most %d", command.MaxUploadBytes)
	}
	customer := *known
	customer.UploadBytes, customer.SheetBytes = p.Bytes, p.Sheet
	tx.PutCustomer(&customer)
	return customer, nil
}

// stopImport ends an upload that somebody stopped. Nothing of it is kept, and its run leaves the
// history.
func stopImport(tx *state.Tx, job *state.Job, reason model.StopReason) {
	ended := *job
	ended.State, ended.Reason, ended.Items = model.Stopped, reason, 0
	known := tx.Import(job.ID)
	if known == nil { // only an ended run has none
		return
	}
	closeImport(tx, &ended, known, []ids.ID{job.ID})
	if scraper := tx.Scraper(job.Scraper); scraper != nil && scraper.LastJob == job.ID {
		before := *scraper
		before.LastJob = known.Before
		tx.PutScraper(&before)
	}
}

// closeImport writes the end of an upload. Its run never changes again, and no read shows the rows
// of the hidden runs.
func closeImport(tx *state.Tx, job *state.Job, known *state.Import, hidden []ids.ID) {
	job.Closed, job.Finished, job.Index = true, tx.Now, tx.Index
	tx.PutJob(job)
	if item := tx.WorkItem(job.ID); item != nil {
		tx.RemoveWork(item)
	}
	if len(hidden) == 0 {
		tx.RemoveImport(known)
	} else {
		ended := *known
		ended.Ended, ended.Hidden = tx.Now, hidden
		tx.PutImport(&ended)
	}
	pruneRecipes(tx, job.Scraper)
	pruneRecipes(tx, job.ID) // the recipe of a run of kept bodies
}

func forgetImports(tx *state.Tx, p command.ForgetImportsPayload) (command.None, error) {
	for _, job := range p.Jobs {
		if known := tx.Import(job); known != nil && known.Ended != 0 {
			tx.RemoveImport(known)
		}
	}
	return command.None{}, nil
}

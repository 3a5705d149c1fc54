package fsm

import (
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// reExtract returns the command of a run of kept bodies of a scraper.
func (b *bench) reExtract(scraper ids.ID) command.BeginReExtractPayload {
	return command.BeginReExtractPayload{Job: b.ids.New(), Customer: "a", Scraper: scraper,
		From: b.ids.New(), Links: 9, Recipe: model.Recipe{Type: model.SingleProduct}}
}

// A run of kept bodies begins once and ends once, in any order and repetition. It needs and books
// no money.
func TestReExtractEndsOnce(t *testing.T) {
	b := newBench(t)
	group, scrapers := b.members("g", 1)
	scraper := scrapers[0]
	begin := b.reExtract(scraper)
	end := command.EndReExtractPayload{Job: begin.Job, Done: command.ReExtracted{Success: 8,
		Errors: 1, Items: 20, Pages: 9, Delivered: 8}}
	half := command.AdvanceReExtractPayload{Job: begin.Job, Done: command.ReExtracted{Success: 4,
		Items: 10, Pages: 4, Delivered: 4}}
	b.must(end) // before it begins
	b.must(half)
	for range 2 {
		if begun := b.must(begin).(command.Launched); begun.Job != begin.Job ||
			begun.Scraper != scraper || begun.Links != 9 || begun.State != model.Running {
			t.Errorf("%+v", begun)
		}
	}
	view := b.view()
	if view.WorkItem(begin.Job) == nil || len(view.OpenJobs()) != 0 ||
		view.Recipe(begin.Job, reExtractRevision) == nil {
		t.Error("nobody is going to read it, or somebody is going to fetch it")
	}
	b.refused(b.reExtract(scraper), fault.ScraperAlreadyRunning)
	for _, success := range []uint32{4, 2, 4} {
		half.Done.Success = success
		b.must(half)
		if job := b.view().Job(begin.Job); job.Success != 4 || job.Items != 10 {
			t.Errorf("%+v", job)
		}
	}
	if hidden := b.view().HiddenIn(group); !slices.Equal(hidden, []ids.ID{begin.Job}) {
		t.Errorf("hidden are %v", hidden)
	}
	late := command.EndReExtractPayload{Job: begin.Job, Message: "late"}
	for _, p := range []command.Payload{end, late, half, end,
		command.EndImportPayload{Job: begin.Job, Message: "of an upload"},
		command.StopRunPayload{Customer: "a", Scraper: scraper}, begin} {
		b.must(p)
		job := b.view().Job(begin.Job)
		if job.State != model.Completed || !job.Closed || job.Items != 20 || job.Errors != 1 ||
			job.Delivered != 8 || job.Message != "" {
			t.Errorf("after command %d: %+v", p.Declaration().Number, job)
		}
	}
	if view := b.view(); view.Import(begin.Job) != nil || view.WorkItem(begin.Job) != nil ||
		view.Recipe(begin.Job, reExtractRevision) != nil || len(view.HiddenIn(group)) != 0 {
		t.Error("something is left of it")
	}
	entries := 0
	b.view().Entries("a", func(*state.Entry) bool { entries++; return true })
	if entries != 1 { // the free grant
		t.Errorf("%d ledger entries", entries)
	}
}

// A run without a delivered page fails, and keeps its errors. A run that was stopped, or cannot be
// read, leaves nothing.
func TestReExtractFails(t *testing.T) {
	b := newBench(t)
	group, scrapers := b.members("g", 1)
	first := b.reExtract(scrapers[0])
	b.must(first)
	b.must(command.EndReExtractPayload{Job: first.Job, Done: command.ReExtracted{Errors: 9,
		Pages: 9}})
	if job := b.view().Job(first.Job); job.State != model.Failed || job.Errors != 9 ||
		job.Shows() || b.view().Import(first.Job) != nil {
		t.Errorf("%+v", job)
	}
	second := b.reExtract(scrapers[0])
	b.must(second)
	b.must(command.EndReExtractPayload{Job: second.Job, Message: "gone"})
	third := b.reExtract(scrapers[0])
	b.must(third)
	b.must(command.StopRunPayload{Customer: "a", Scraper: scrapers[0]})
	for job, want := range map[ids.ID]model.JobState{second.Job: model.Failed,
		third.Job: model.Stopped} {
		if got := b.view().Job(job); got.State != want || !got.Closed ||
			b.view().Recipe(job, reExtractRevision) != nil {
			t.Errorf("%+v", got)
		}
	}
	if hidden := b.view().HiddenIn(group); len(hidden) != 2 {
		t.Errorf("hidden are %v", hidden)
	}
	foreign := b.reExtract(b.ids.New())
	b.refused(foreign, fault.ScraperNotFound)
}

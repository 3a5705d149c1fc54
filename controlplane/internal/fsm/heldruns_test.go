package fsm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// quarantined makes a scraper in a group that holds unusual runs back.
func (b *bench) quarantined(name string) (scraper ids.ID) {
	b.t.Helper()
	scraper = b.product(name)
	group := b.view().Group(b.view().Scraper(scraper).Group)
	b.must(command.PutGroupPayload{ID: group.ID, Customer: "a", Name: group.Name,
		DataTable: group.DataTable, StartType: group.StartType, Quarantine: true})
	return scraper
}

// Repeats and other orders change nothing: a run is held back once, reported once, and released for
// good. Its release is told as its completion.
func TestRunIsHeldOnce(t *testing.T) {
	b := newBench(t)
	scraper := b.quarantined("Shop")
	job := b.run(scraper, 1, model.Delivered)
	release := command.ReleaseRunPayload{Customer: "a", Job: job}
	b.must(release) // before it is held back
	b.now = 7_000
	b.must(command.CloseRunPayload{Job: job, Odd: "few rows"})
	b.now++
	b.must(command.CloseRunPayload{Job: job, Odd: "no rows"})
	charged := b.view().Job(job).Charged
	want := state.HeldRun{Job: job, Customer: "a", Scraper: scraper, Why: "few rows", At: 7_000,
		Pages: 1, Items: 3, Micros: charged}
	if held := b.view().HeldRun(job); held == nil || *held != want {
		t.Fatalf("held: %+v, want %+v", held, want)
	}
	all := told(b.view(), "a")
	if len(all) != 1 || all[0].Event != model.RunAnomaly || all[0].Message != "few rows" ||
		all[0].Name != "Shop" || all[0].Subject != job {
		t.Errorf("told: %+v", all)
	}
	b.must(command.ReleaseRunPayload{Customer: "b", Job: job})
	if b.view().HeldRun(job) == nil {
		t.Error("another customer has released it")
	}
	for range 2 {
		b.must(release)
		if held := b.view().HeldRunsOf("a"); len(held) > 0 {
			t.Errorf("held after its release: %+v", held[0])
		}
	}
	all = told(b.view(), "a")
	if len(all) != 2 || all[0].Event != model.RunCompleted || all[0].Message != "" ||
		all[0].Name != "Shop" || all[0].Subject != job || all[0].Items != 3 ||
		all[0].Micros != charged {
		t.Errorf("told of its release: %+v", all)
	}
	b.must(command.CloseRunPayload{Job: job, Odd: "few rows"})
	if b.view().HeldRun(job) != nil {
		t.Error("a late repeat of its end holds it back again")
	}
}

// Only complete runs are held back, and only where their group wants that.
func TestWhatIsNotHeld(t *testing.T) {
	b := newBench(t)
	plain, strict := b.product("Plain"), b.quarantined("Strict")
	stopped := b.run(strict, 2, model.Delivered)
	b.must(command.StopRunPayload{Customer: "a", Job: stopped})
	for name, c := range map[string]struct {
		job ids.ID
		odd string
	}{
		"without quarantine": {b.run(plain, 1, model.Delivered), "odd"},
		"not odd":            {b.run(strict, 1, model.Delivered), ""},
		"stopped":            {stopped, "odd"},
	} {
		b.must(command.CloseRunPayload{Job: c.job, Odd: c.odd})
		if job := b.view().Job(c.job); !job.Closed || b.view().HeldRun(c.job) != nil {
			t.Errorf("%s: %+v is held", name, job)
		}
	}
	failed := b.run(strict, 1, model.Errored)
	b.must(command.CloseRunPayload{Job: failed, Odd: "odd"})
	if b.view().HeldRun(failed) != nil {
		t.Error("a failed run is held")
	}
}

// A customer's held runs are bounded in number, and each reason in bytes. Beyond the bound an odd
// run fails, so that neither it nor another one begins to count. Marks of runs without rows go
// first.
func TestHeldRunsAreBounded(t *testing.T) {
	b := newBench(t)
	scraper := b.quarantined("Shop")
	first, orphan, odd := b.ids.New(), b.ids.New(), "x"+strings.Repeat("ö", command.MaxWhy)
	change := func(change func(tx *state.Tx)) {
		t.Helper()
		b.index++
		if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
			change(tx)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	change(func(tx *state.Tx) {
		tx.PutHeldRun(&state.HeldRun{Job: first, Customer: "a", Scraper: scraper, At: 1})
		tx.PutHeldRun(&state.HeldRun{Job: orphan, Customer: "a", Scraper: scraper, At: 2})
		for n := range maxHeldRuns - 2 {
			tx.PutHeldRun(&state.HeldRun{Job: b.ids.New(), Customer: "a", Scraper: scraper,
				Why: fmt.Sprint(n), At: 2})
		}
	})
	b.now = 9
	failed := b.run(scraper, 1, model.Delivered)
	b.must(command.CloseRunPayload{Job: failed, Odd: odd})
	v := b.view()
	if job := v.Job(failed); job.State != model.Failed || job.Shows() || v.HeldRun(failed) != nil ||
		!strings.Contains(job.Message, "xöö") || len(job.Message) > command.MaxWhy {
		t.Errorf("without room it is %+v", job)
	}
	if all := told(v, "a"); len(all) != 1 || all[0].Event != model.RunFailed {
		t.Errorf("told: %+v", all)
	}
	if held := v.HeldRunsOf("a"); len(held) != maxHeldRuns || v.HeldRun(first) == nil {
		t.Errorf("%d are held", len(held))
	}
	change(func(tx *state.Tx) {
		tx.PutHeldRun(&state.HeldRun{Job: orphan, Customer: "a", Scraper: b.ids.New(), At: 2})
		tx.PutWork(&state.Work{ID: b.ids.New(), Kind: work.Expire,
			Progress: rowstore.NoteExpiry(time.UnixMilli(2))})
	})
	job := b.run(scraper, 1, model.Delivered)
	b.must(command.CloseRunPayload{Job: job, Odd: odd})
	v = b.view()
	if held := v.HeldRunsOf("a"); len(held) != maxHeldRuns-1 || v.HeldRun(first) != nil ||
		v.HeldRun(orphan) != nil ||
		v.HeldRun(job).Why != "x"+strings.Repeat("ö", (command.MaxWhy-1)/2) {
		t.Errorf("%d are held", len(held))
	}
}

// A run of kept bodies is held back like any other, and completes by its release.
func TestReExtractIsHeld(t *testing.T) {
	b := newBench(t)
	begin := b.reExtract(b.quarantined("Shop"))
	b.must(begin)
	end := command.EndReExtractPayload{Job: begin.Job, Odd: "few rows",
		Done: command.ReExtracted{Success: 1, Items: 2, Pages: 1, Delivered: 1}}
	for range 2 {
		b.must(end)
	}
	if job, held := b.view().Job(begin.Job), b.view().HeldRun(begin.Job); held == nil ||
		held.Why != "few rows" || job.State != model.Completed {
		t.Errorf("%+v is held: %+v", job, held)
	}
	b.must(command.ReleaseRunPayload{Customer: "a", Job: begin.Job})
	all := told(b.view(), "a")
	if len(all) != 2 || all[0].Event != model.RunCompleted || all[0].Items != 2 ||
		all[1].Event != model.RunAnomaly {
		t.Errorf("told: %+v", all)
	}
}

// A run that could not be judged says so, and so does its notice, if its group wants judgements.
func TestUnjudgedRunsSaySo(t *testing.T) {
	const late = "that took too long"
	b := newBench(t)
	job, unasked := b.run(b.quarantined("Shop"), 1, model.Delivered),
		b.run(b.product("Other"), 1, model.Delivered)
	begin := b.reExtract(b.quarantined("Kept"))
	b.must(begin)
	b.must(command.CloseRunPayload{Job: job, Unjudged: late})
	b.must(command.CloseRunPayload{Job: unasked, Unjudged: late})
	b.must(command.EndReExtractPayload{Job: begin.Job, Unjudged: late,
		Done: command.ReExtracted{Success: 1, Items: 2, Pages: 1, Delivered: 1}})
	want := map[ids.ID]string{job: late, unasked: "", begin.Job: late}
	for id, message := range want {
		if job := b.view().Job(id); job.State != model.Completed || job.Message != message {
			t.Errorf("%+v, want %q", job, message)
		}
	}
	all := told(b.view(), "a")
	for _, n := range all {
		if n.Event != model.RunCompleted || n.Message != want[n.Subject] {
			t.Errorf("told: %+v", n)
		}
	}
	if len(all) != len(want) {
		t.Errorf("told: %+v", all)
	}
}

// Deleting a held run's rows releases it. A late repeat of its end holds nothing back.
func TestDeletedRunIsNotHeld(t *testing.T) {
	b := newBench(t)
	scraper := b.quarantined("Shop")
	job := b.run(scraper, 1, model.Delivered)
	b.must(command.CloseRunPayload{Job: job, Odd: "few rows"})
	d := deletionOf(job, *b.view().Scraper(scraper))
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteRunPayload{Deletion: d, Token: "t"})
	b.must(command.CloseRunPayload{Job: job, Odd: "few rows"})
	b.must(command.ReleaseRunPayload{Customer: "a", Job: job})
	if held := b.view().HeldRunsOf("a"); len(held) > 0 || b.view().DeletedRun(job) == nil {
		t.Errorf("held after its deletion: %+v", held)
	}
}

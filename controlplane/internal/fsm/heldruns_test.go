package fsm

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
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
// good.
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
	want := state.HeldRun{Job: job, Customer: "a", Scraper: scraper, Why: "few rows", At: 7_000}
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

// A customer's held runs are bounded in number, and each reason in bytes.
func TestHeldRunsAreBounded(t *testing.T) {
	b := newBench(t)
	scraper := b.quarantined("Shop")
	first := b.ids.New()
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.PutHeldRun(&state.HeldRun{Job: first, Customer: "a", At: 1})
		for n := range maxHeldRuns - 1 {
			tx.PutHeldRun(&state.HeldRun{Job: b.ids.New(), Customer: "a", Why: fmt.Sprint(n),
				At: 2})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.now = 9
	job := b.run(scraper, 1, model.Delivered)
	b.must(command.CloseRunPayload{Job: job, Odd: "x" + strings.Repeat("ö", command.MaxWhy)})
	v := b.view()
	if held := v.HeldRunsOf("a"); len(held) != maxHeldRuns || v.HeldRun(first) != nil ||
		v.HeldRun(job).Why != "x"+strings.Repeat("ö", (command.MaxWhy-1)/2) {
		t.Errorf("%d are held", len(held))
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

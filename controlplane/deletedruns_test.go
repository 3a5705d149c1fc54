package controlplane

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// A deleted run's mark leaves the state when the history has the run no more, in whatever row
// store, and not before.
func TestMarksLeaveWithTheHistory(t *testing.T) {
	t.Parallel()
	config, at := testConfig(t, t.TempDir()), clock.NewManual(time.Now())
	config.Clock, config.HistoryKept = at, 24*time.Hour
	s := serve(t, config)
	customer, scraper := prepare(t, s, config)
	job := launch(t, s, config, customer, scraper, 1)
	deletion := client.Deletion{Customer: customer, Operation: client.OpDeleteRun, Target: job,
		Run: &client.TargetRun{Group: fresh(t, s).Scraper(scraper).Group, Scraper: scraper}}
	if _, err := client.Do(patient(t), s, client.PreviewDelete{Deletion: deletion, Token: "t"},
		nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(patient(t), s, client.DeleteRun{Deletion: deletion, Token: "t"},
		nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(patient(t), s, client.NoteRowsRemoved{Jobs: []ids.ID{job}},
		nil); err != nil {
		t.Fatal(err)
	}
	const margin = 32
	for day := range 2 + margin {
		if day <= margin && fresh(t, s).DeletedRun(job) == nil {
			t.Fatalf("the mark is gone after %d days", day)
		}
		at.Advance(24 * time.Hour)
	}
	until(t, "the mark's end", func() bool {
		at.Advance(time.Minute)
		return fresh(t, s).DeletedRun(job) == nil
	})
}

package controlplane

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// The mark of a deleted run leaves the state once no history of any row store has the run. The time
// for that is the operators' setting or the leader's configuration.
func TestMarksLeaveWithTheHistory(t *testing.T) {
	t.Parallel()
	t.Run("as started", func(t *testing.T) {
		t.Parallel()
		marksLeave(t, 1, 0)
	})
	t.Run("as set", func(t *testing.T) {
		t.Parallel()
		marksLeave(t, 1, 90)
	})
}

func marksLeave(t *testing.T, started, set uint32) {
	config, at := testConfig(t, t.TempDir()), clock.NewManual(time.Now())
	config.Clock, config.HistoryKept = at, time.Duration(started)*24*time.Hour
	s := serve(t, config)
	if set > 0 {
		if _, err := client.Do(patient(t), s, client.PutSettings{HistoryDays: &set},
			nil); err != nil {
			t.Fatal(err)
		}
	}
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
	const margin = 31
	kept := margin + int(max(started, set))
	for day := range kept + 2 {
		if day <= kept && fresh(t, s).DeletedRun(job) == nil {
			t.Fatalf("the mark is gone after %d days", day)
		}
		at.Advance(24 * time.Hour)
	}
	until(t, "the mark's end", func() bool {
		at.Advance(time.Minute)
		return fresh(t, s).DeletedRun(job) == nil
	})
}

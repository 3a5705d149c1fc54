package simulation

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/model"
)

// A trial that was stopped and sealed after a backup is open again after the restore. Its missing
// pages are found lost, so it is stopped again. A trial has no scraper whose id could be used to
// stop it.
func TestSealedTrialIsStoppedAgain(t *testing.T) {
	w, err := newWorld(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, customer := context.Background(), w.runs[0].customer
	if err := w.topUp(customer, 100*pagePrice); err != nil {
		t.Fatal(err)
	}
	trial := command.LaunchRunPayload{Job: w.ids.New(), Entry: w.ids.New(), Customer: customer,
		List: w.ids.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain),
		Trial: &command.Trial{Recipe: model.Recipe{Type: model.SingleProduct}}}
	w.store.lists[trial.List] = []string{"http://h0/trial"}
	if _, err := w.propose(ctx, trial); err != nil {
		t.Fatal(err)
	}
	w.runs = nil
	w.store.sealed[trial.Job] = true
	for n := 0; len(w.openJobs()) > 0; n++ {
		if err := w.step(); err != nil || n == 10_000 {
			t.Fatalf("after %d steps: %v", n, err)
		}
	}
	if job, err := w.job(trial.Job); err != nil || job.State != model.Stopped || !job.Closed {
		t.Errorf("it ended as %+v", job)
	}
}

package controlplane

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// A run whose sealing takes long holds up no other: another run's unsent links are given back, and
// it is closed.
func TestRunThatIsSealedForLongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	first, begun, goOn := ids.ID{}, make(chan ids.ID), make(chan struct{})
	config.Store.(*lists).sealing = func(ctx context.Context, job ids.ID) {
		if first == (ids.ID{}) {
			first = job
			begun <- job
		}
		if job != first {
			return
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	r := serve(t, config)
	customer, scraper := prepare(t, r, config)
	other := client.PutScraper{Create: true, ID: config.IDs.New(), Customer: customer,
		Group: r.View().Scraper(scraper).Group,
		Spec:  model.Scraper{Name: "other", Type: model.SingleProduct}}
	if _, err := client.Do(patient(t), r, other, nil); err != nil {
		t.Fatal(err)
	}
	// Nobody reads a shard, so nothing of a run is sent before it is stopped.
	stopped := func(scraper ids.ID) ids.ID {
		job := launch(t, r, config, customer, scraper, 3)
		until(t, "what goes out", func() bool {
			status, err := r.Status(patient(t))
			return err == nil && status.Out == 3
		})
		stop := client.StopRun{Customer: customer, Scraper: scraper, Job: job}
		if _, err := client.Do(patient(t), r, stop, nil); err != nil {
			t.Fatal(err)
		}
		return job
	}
	slow := stopped(scraper)
	if job := <-begun; job != slow {
		t.Fatalf("run %s is sealed, not %s", job, slow)
	}
	finished(t, r, stopped(other.ID))
	if r.View().Job(slow).Closed {
		t.Error("the slow run is closed before it is sealed")
	}
	close(goOn)
	finished(t, r, slow)
}

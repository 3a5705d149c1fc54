package ingest

import (
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// An owner is about to store a batch, but another has stored all of them and sealed the run. The
// owner then takes the upload for complete.
func TestAnotherImporterSeals(t *testing.T) { onEachStore(t, anotherImporterSeals) }

func anotherImporterSeals(t *testing.T, start starter) {
	u := start(t)
	job := u.upload("csv", column(0, 5_000))
	paused, on := make(chan struct{}), make(chan struct{})
	first := true
	u.point = func(name string) {
		if name == "work.import.before_put" && first {
			first = false
			close(paused)
			<-on
		}
	}
	var late sync.WaitGroup
	late.Go(func() { u.step(job) })
	<-paused
	u.point = func(name string) {
		if name == "work.import.after_seal" {
			close(on)
			late.Wait()
		}
	}
	u.step(job)
	u.wants("sealed by another", 0, 5_000)
	if ended := u.client.View().Job(job); ended.State != model.Completed || ended.Items != 5_000 {
		t.Errorf("%+v", ended)
	}
}

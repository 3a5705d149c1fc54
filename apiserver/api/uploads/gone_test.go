package uploads_test

import (
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// watched is a source of ids that calls before ahead of one of them.
type watched struct {
	ids.Source
	left   atomic.Int32 // ids until then
	before func()
}

func (w *watched) New() ids.ID {
	if w.left.Add(-1) == 0 {
		w.before()
	}
	return w.Source.New()
}

// A group that is deleted while its file arrives gets the same answer as a missing one.
func TestGroupGoesWhileItsFileComes(t *testing.T) {
	source := &watched{}
	r := start(t, func(config *apiserver.Config) {
		source.Source, config.IDs = config.IDs, source
	})
	d := client.Deletion{Customer: "alice", Operation: client.OpDeleteGroup, Target: r.group}
	r.Client.Must(t, client.PreviewDelete{Deletion: d, Token: "t"})
	source.before = func() { r.Client.Must(t, client.DeleteGroup{Deletion: d, Token: "t"}) }
	const ofScraperAndJob = 2
	source.left.Store(ofScraperAndJob)
	sc := refused("gone meanwhile", r.first("x", "csv", csv, "a\n1\n"), 400, "not_found")
	sc.Header["X-Request-Id"] = "the caller's, so that none is made"
	r.Run(t, sc)
	if left := source.left.Load(); left > 0 {
		t.Error("the group was not deleted")
	}
	if r.files(t) != 0 {
		t.Error("the file is left")
	}
}

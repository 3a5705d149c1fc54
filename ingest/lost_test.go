package ingest

import (
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// After a backup a protected scraper gets another file, which replaces the run of the backup. That
// run's rows are removed, and the backup is restored. The next file is then refused, until the
// customer deletes what is left of the run. Without that, the file would pass for all rows.
func TestRestoredUploadWithoutItsRowsIsNoBase(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		u := start(t)
		lost := u.whole("csv", "EAN,a\n1,x\n2,y\n")
		u.protect()
		first := u.steps(u.send("EAN", "csv", "EAN,a\n3,z\n"))
		u.remove()
		backup := u.client.Backup(t)
		if again := u.steps(u.send("EAN", "csv", "EAN,a\n4,w\n")); again.Items != 4 {
			t.Fatalf("%+v", again)
		}
		u.remove()
		u.client.Restore(t, backup, ids.ID{7})
		rows := func() []string { rows, _ := u.documents(); return rows }
		if job := u.client.View().Job(first.ID); job.Items != 3 || len(rows()) != 0 ||
			u.client.View().Job(lost) == nil {
			t.Fatalf("the restored run is %+v, and the rows are %v", job, rows())
		}
		refused := u.steps(u.send("EAN", "csv", "EAN,a\n5,v\n"))
		if refused.State != model.Failed || !strings.Contains(refused.Message, first.ID.String()) {
			t.Errorf("a file becomes the scraper's rows: %+v", refused)
		}
		deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteRun,
			Target: first.ID, Run: &client.TargetRun{Group: u.group, Scraper: u.scraper}}
		u.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
		u.client.Must(t, client.DeleteRun{Deletion: deletion, Token: "t"})
		u.remove()
		whole := u.steps(u.send("EAN", "csv", "EAN,a\n6,u\n"))
		if want := []string{`{"EAN":"6","a":"u"}`}; whole.State != model.Completed ||
			!slices.Equal(rows(), want) {
			t.Errorf("%+v with rows %v, want %v", whole, rows(), want)
		}
	})
}

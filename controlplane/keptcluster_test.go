package controlplane

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/blobstore/blobstoretest"
	"shoal.dev/shoal/pkg/work"
)

// blobsInS3 opens a blob store in a bucket of the test's own, on a real server.
func blobsInS3(t *testing.T) *blobstore.Store {
	t.Helper()
	config := blobstore.S3{Endpoint: os.Getenv("S3_URL"), Key: os.Getenv("S3_KEY"),
		Secret: os.Getenv("S3_SECRET"), Bucket: "test-" + strings.ToLower(rand.Text())}
	if config.Endpoint == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("S3_URL is not set")
		}
		t.Skip("S3_URL is not set")
	}
	if err := blobstoretest.MakeBucket(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	blobs, err := blobstore.OpenS3(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return blobs
}

// TestBackupsOfACluster: the next leader finds the last leader's backup and takes none early, and
// any node can restore it.
func TestBackupsOfACluster(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *blobstore.Store{
		"Directory": func(t *testing.T) *blobstore.Store { return blobsIn(t, t.TempDir()) },
		"S3":        blobsInS3,
	} {
		t.Run(name, func(t *testing.T) { testBackupsOfACluster(t, open(t)) })
	}
}

func testBackupsOfACluster(t *testing.T, blobs Blobs) {
	r := newReef(t)
	r.blobs, r.backups = blobs, Backups{Every: time.Hour, Keep: 2}
	r.found("a")
	r.add("b", identity.Roles()...)
	r.add("c", identity.Roles()...)
	r.untilServers("a* b* c*")
	openCustomer(t, r.nodes["a"], "ann")
	first := r.nodes["a"]
	taken, err := first.scheduled.writeBackup(patient(t),
		first.config.Clock.Now().Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	r.kill(r.leads().config.Node)
	next := r.leads() // its step takes no backup: none is due
	found := kept(t, next)
	if len(found) != 2 || found[1].Name != taken.Name {
		t.Fatalf("%+v are kept, want two and %s the older", found, taken.Name)
	}
	openCustomer(t, next, "bob")
	for name, node := range r.nodes { // one of them leads
		r.until(name+" restores", func() bool {
			_, err := node.Operator().RestoreKept(patient(t), found[0].Name,
				client.RestoreOptions{})
			return err == nil // while leadership moves, the outcome is unknown
		})
		view := fresh(t, node)
		if view.Customer("ann") == nil || view.Customer("bob") != nil {
			t.Error("the state is not that of the backup")
		}
	}
}

// leads returns a node that led while it made a step of taking backups.
func (r *reef) leads() (leader *running) {
	r.t.Helper()
	r.until("a step of the leader", func() bool {
		if leader = r.leader(); leader == nil {
			return false
		}
		outcome, err := leader.Backups().Step(patient(r.t), work.Item{})
		return err == nil && outcome.Rest > 0
	})
	return leader
}

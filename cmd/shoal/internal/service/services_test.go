package service

import (
	"context"
	"maps"
	"strings"
	"testing"

	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/stream"
)

// farLog is an external log: it knows how far groups are, but not the tails of other processes.
type farLog struct{ stream.Log }

func (farLog) Embedded() bool { return false }

func (farLog) Lag(topic stream.Topic) int64 {
	return map[stream.Topic]int64{stream.Pages: 12, stream.Receipts: 3}[topic]
}

// ledBy is a control plane with a given leader, whose fetchers have reported their unread tasks.
type ledBy struct {
	controlclient.Client
	leader string
}

func (l ledBy) Status(context.Context) (controlclient.Status, error) {
	return controlclient.Status{Leader: l.leader}, nil
}

func (ledBy) Nodes(context.Context) ([]controlclient.NodeStatus, error) {
	return []controlclient.NodeStatus{{Name: "f1", Unread: 5}, {Name: "f2", Unread: 2},
		{Name: "i1"}}, nil
}

func TestLagOfACluster(t *testing.T) {
	for leader, want := range map[string]map[string]int64{
		"cp1": {"tasks": 7, "pages": 12, "receipts": 3},
		"":    {"pages": 12, "receipts": 3},
	} {
		s := &Services{log: farLog{}}
		var control controlclient.Client = ledBy{leader: leader}
		s.state.Store(&control)
		if lag := s.lag(t.Context()); !maps.Equal(lag, want) {
			t.Errorf("leader %q: %v, want %v", leader, lag, want)
		}
	}
}

// TestRowsAreKeptElsewhere: a copy of the row store beside the original would be lost with it.
func TestRowsAreKeptElsewhere(t *testing.T) {
	for blobs, kept := range map[string]bool{"": false, "dir:data/blobs": false, "dir:data": false,
		"dir:./data/../data/b": false, "dir:data2": true, "dir:/mnt/blobs": true,
		"s3://bucket": true} {
		n := &node{config: Config{Data: "./data", FreeMB: 7}}
		n.config.Services.Blobs = blobs
		backups := n.backups()
		if backups.Rows != kept {
			t.Errorf("--blobs %q: the rows are kept: %v", blobs, backups.Rows)
		}
		if local := strings.HasPrefix(blobs, inDirectory); (backups.Disk != nil) != local ||
			local && backups.Disk.Floor.Bytes() != 7<<20 {
			t.Errorf("--blobs %q fills the disk %+v", blobs, backups.Disk)
		}
	}
}

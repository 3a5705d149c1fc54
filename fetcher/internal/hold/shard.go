package hold

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
)

// pauses are between two tries of a failing call.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// shard is a shard that this process holds. mu guards what is below reader.
type shard struct {
	hold   *Hold
	number uint16
	epoch  uint64
	ctx    context.Context // ends when the shard is dropped; requests of its pages end with it
	cancel context.CancelFunc
	wake   chan struct{} // the outbox has something
	reader stream.Reader

	until      time.Time // the lease's end
	releasing  bool      // no page is begun
	finishBy   time.Time // while releasing: until then pages that have begun may start requests
	gone       bool      // dropped
	publishing bool
	// number of the newest dispatch that came, or had been sent by what lease or marker say
	newest uint64
	// open are the tasks that a marker must name: from their arrival until the log has accepted
	// their final page.
	open   map[ids.ID]map[uint32]*Task
	tasks  int        // in open
	down   int        // of them, those laid down
	outbox []outgoing // in the order in which the log gets it
}

func (h *Hold) newShard(held client.ShardEpoch, until time.Time, reader stream.Reader) *shard {
	s := &shard{hold: h, number: held.Shard, epoch: held.Epoch, newest: held.Newest, until: until,
		reader: reader, wake: make(chan struct{}, 1),
		open: map[ids.ID]map[uint32]*Task{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// isFresh says whether the shard may be worked on. It needs mu.
func (s *shard) isFresh(now time.Time) bool { return !s.gone && now.Before(s.until) }

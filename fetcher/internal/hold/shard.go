package hold

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// pauses are the waits between two tries of a failing call.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// shard is a shard that this process holds. mu guards the fields after reader.
type shard struct {
	hold   *Hold
	number uint16
	epoch  uint64
	ctx    context.Context // ends when the shard is dropped, and ends its requests
	cancel context.CancelFunc
	wake   wake.Signal // the outbox is not empty
	reader stream.Reader

	until      time.Time // end of the lease
	releasing  bool      // no page may be begun
	finishBy   time.Time // while releasing: begun pages may start requests until then
	gone       bool      // dropped
	publishing bool
	// number of the newest dispatch seen, or known from a lease or marker
	newest uint64
	// open are the tasks that a marker must name: from their arrival until the log has accepted
	// their final page.
	open   map[ids.ID]map[uint32]*Task
	tasks  int        // in open
	down   int        // how many of them are laid down
	outbox []outgoing // in the order of publication
}

func (h *Hold) newShard(held client.ShardEpoch, until time.Time, reader stream.Reader) *shard {
	s := &shard{hold: h, number: held.Shard, epoch: held.Epoch, newest: held.Newest, until: until,
		reader: reader, wake: wake.NewSignal(),
		open: map[ids.ID]map[uint32]*Task{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// isFresh says whether the shard's lease still runs. It needs mu.
func (s *shard) isFresh(now time.Time) bool { return !s.gone && now.Before(s.until) }

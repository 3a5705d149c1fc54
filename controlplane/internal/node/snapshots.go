package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
)

// syncedAtOnce is how many bytes of a snapshot are written between two syncs. The Raft log shares
// the disk, and its next write waits for them, as do commands.
const syncedAtOnce = 1 << 20

const (
	// longestRest is the longest rest between two pieces of a snapshot, so that a loaded machine
	// still finishes it in time.
	longestRest = 5 * time.Millisecond
)

// snapshots are Raft's snapshot files in dir, which are synced while they are written.
type snapshots struct {
	raft.SnapshotStore
	dir string
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64,
	transport raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex,
		transport)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(s.dir, sink.ID()+".tmp", "state.bin"), os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("controlplane: sync a snapshot: %w", err),
			sink.Cancel())
	}
	return &syncedSink{SnapshotSink: sink, file: file}, nil
}

// syncedSink syncs what Raft's own sink has written, through a second handle of the same file.
type syncedSink struct {
	raft.SnapshotSink
	file   *os.File
	behind int // bytes written since the last sync
}

// Write implements raft.SnapshotSink.
func (s *syncedSink) Write(data []byte) (int, error) {
	n, err := s.SnapshotSink.Write(data)
	if s.behind += n; err == nil && s.behind >= syncedAtOnce {
		s.behind, err = 0, s.file.Sync()
	}
	return n, err
}

// Close implements raft.SnapshotSink. Raft may close a sink twice.
func (s *syncedSink) Close() error {
	_ = s.file.Close() // nothing was written through it
	return s.SnapshotSink.Close()
}

// Cancel implements raft.SnapshotSink.
func (s *syncedSink) Cancel() error {
	_ = s.file.Close() // nothing was written through it
	return s.SnapshotSink.Cancel()
}

// pacedWriter rests after each piece for as long as the piece took to make. This leaves the
// processors of a small machine to commands.
type pacedWriter struct {
	to     io.Writer
	clock  clock.Clock
	rested time.Time // when the piece was begun; zero: it is the first piece
}

// Write implements io.Writer.
func (w *pacedWriter) Write(piece []byte) (int, error) {
	n, err := w.to.Write(piece)
	now := w.clock.Now()
	if worked := now.Sub(w.rested); !w.rested.IsZero() && worked > 0 {
		<-w.clock.After(min(worked, longestRest))
		now = w.clock.Now()
	}
	w.rested = now
	return n, err
}

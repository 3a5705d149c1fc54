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

// syncedAtOnce is how many bytes of a snapshot wait for the disk at most. The log's disk is the
// same: its next write waits until what is before it is there, and commands wait for that write.
const syncedAtOnce = 1 << 20

const (
	// longestRest is how long the writer of a snapshot rests between two pieces at most, so that a
	// loaded machine writes it in time.
	longestRest = 5 * time.Millisecond
)

// snapshots are Raft's in files of dir, which are synced while they are written.
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

// syncedSink syncs what Raft's own sink has written, by a file of its own that is the same on disk.
type syncedSink struct {
	raft.SnapshotSink
	file   *os.File
	behind int // bytes since the last sync
}

// Write implements raft.SnapshotSink.
func (s *syncedSink) Write(data []byte) (int, error) {
	n, err := s.SnapshotSink.Write(data)
	if s.behind += n; err == nil && s.behind >= syncedAtOnce {
		s.behind, err = 0, s.file.Sync()
	}
	return n, err
}

// Close implements raft.SnapshotSink. Raft closes a sink again that was closed.
func (s *syncedSink) Close() error {
	_ = s.file.Close() // nothing was written by it
	return s.SnapshotSink.Close()
}

// Cancel implements raft.SnapshotSink.
func (s *syncedSink) Cancel() error {
	_ = s.file.Close() // nothing was written by it
	return s.SnapshotSink.Cancel()
}

// pacedWriter has whoever writes rest between two pieces, for as long as the piece took to make.
// Commands have the processors of a small machine then.
type pacedWriter struct {
	to     io.Writer
	clock  clock.Clock
	rested time.Time // when the piece was begun; zero: it is the first
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

package node

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"shoal.dev/shoal/pkg/clock"
)

// openLog makes a log with entries 1 to n, and counts the writes from then on.
func openLog(t *testing.T, n uint64) (log *store, writes *int) {
	t.Helper()
	bolt, err := raftboltdb.NewBoltStore(filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bolt.Close() })
	writes = new(int)
	log = &store{BoltStore: bolt, clock: clock.NewManual(time.Unix(1, 0)),
		before: func() { *writes++ }, took: func(float64) {}}
	var entries []*raft.Log
	for index := uint64(1); index <= n; index++ {
		entries = append(entries, &raft.Log{Index: index, Term: 1})
	}
	if err := log.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	*writes = 0
	return log, writes
}

func TestOldEntriesGoInParts(t *testing.T) {
	for _, c := range []struct {
		about       string
		first, last uint64
		writes      int
	}{
		{"as many as go at once", 1, deletedAtOnce, 1},
		{"one more", 1, deletedAtOnce + 1, 2},
		{"three parts", 1, 3 * deletedAtOnce, 3},
		{"one", 1, 1, 1},
		{"the end of the log", 2, 4 * deletedAtOnce, 1},
		{"all", 1, 4 * deletedAtOnce, 1},
	} {
		log, writes := openLog(t, 4*deletedAtOnce)
		if err := log.DeleteRange(c.first, c.last); err != nil {
			t.Fatal(err)
		}
		if *writes != c.writes {
			t.Errorf("%s: %d writes, want %d", c.about, *writes, c.writes)
		}
		for index := uint64(1); index <= 4*deletedAtOnce; index++ {
			err := log.GetLog(index, &raft.Log{})
			if gone := c.first <= index && index <= c.last; gone != errors.Is(err,
				raft.ErrLogNotFound) || !gone && err != nil {
				t.Errorf("%s: entry %d: %v, and it went is %v", c.about, index, err, gone)
			}
		}
	}
}

// A process may die between two parts: what is left is the end of the log, without a gap.
func TestPartsGoFromTheFront(t *testing.T) {
	log, writes := openLog(t, 4*deletedAtOnce)
	killAt(t, log, writes, 3, func() { _ = log.DeleteRange(1, 4*deletedAtOnce-1) })
	first, err := log.FirstIndex()
	if err != nil || first != 2*deletedAtOnce+1 {
		t.Fatalf("the log begins at %d, want %d: %v", first, 2*deletedAtOnce+1, err)
	}
	if last, err := log.LastIndex(); err != nil || last != 4*deletedAtOnce {
		t.Fatalf("the log ends at %d: %v", last, err)
	}
}

// killAt does something until its nth write, which is not done.
func killAt(t *testing.T, log *store, writes *int, nth int, do func()) {
	t.Helper()
	killed, count := errors.New("killed"), log.before
	*writes = 0
	log.before = func() {
		if count(); *writes == nth {
			panic(killed)
		}
	}
	defer func() {
		log.before = count
		if caught := recover(); caught != any(killed) {
			t.Fatalf("it panicked with %v", caught)
		}
	}()
	do()
}

// A process may die between the two parts of a vote. Then it has not voted, and not for whom it
// voted before.
func TestVotesArePutDownWhole(t *testing.T) {
	log, writes := openLog(t, 1)
	vote := func(term uint64, candidate string) { // as Raft does
		if err := errors.Join(log.SetUint64([]byte(voteTerm), term),
			log.Set([]byte(voteCandidate), []byte(candidate))); err != nil {
			t.Fatal(err)
		}
	}
	voted := func() (uint64, string) {
		term, err := log.GetUint64([]byte(voteTerm))
		candidate, failed := log.Get([]byte(voteCandidate))
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		return term, string(candidate)
	}
	vote(1, "a")
	for nth := range 2 {
		killAt(t, log, writes, nth+1, func() { vote(2, "b") })
		if term, candidate := voted(); term != 1 {
			t.Errorf("killed at write %d, it has voted in term %d for %s", nth+1, term, candidate)
		}
	}
	vote(2, "b")
	if term, candidate := voted(); term != 2 || candidate != "b" {
		t.Errorf("it has voted in term %d for %s", term, candidate)
	}
}

// Raft calls the parts of a vote as the store does.
func TestRaftNamesVotes(t *testing.T) {
	t.Parallel()
	address, transport := raft.NewInmemTransport("")
	n := startVoter(t, transport, raft.Server{ID: "voter", Address: address})
	<-n.LeaderChanges()
	term, err := n.raft.logs.GetUint64([]byte(voteTerm))
	candidate, failed := n.raft.logs.Get([]byte(voteCandidate))
	if err := errors.Join(err, failed); err != nil || term != n.raft.CurrentTerm() ||
		string(candidate) != string(address) {
		t.Errorf("its vote in term %d is of term %d, for %q, %v", n.raft.CurrentTerm(), term,
			candidate, err)
	}
}

func TestSnapshotsAreWrittenWholeAndSynced(t *testing.T) {
	dir := t.TempDir()
	files, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	made := &snapshots{SnapshotStore: files, dir: filepath.Join(dir, "snapshots")}
	_, transport := raft.NewInmemTransport("a")
	create := func(index uint64) *syncedSink {
		sink, err := made.Create(1, index, 1, raft.Configuration{}, 1, transport)
		if err != nil {
			t.Fatal(err)
		}
		return sink.(*syncedSink)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), (syncedAtOnce*5/2)/16)
	sink := create(1)
	for part := range slices.Chunk(data, 1000) {
		if _, err := sink.Write(part); err != nil {
			t.Fatal(err)
		}
		if sink.behind >= syncedAtOnce {
			t.Fatalf("%d bytes wait for the disk", sink.behind)
		}
	}
	if err := errors.Join(sink.Close(), sink.Close()); err != nil {
		t.Fatal(err)
	}
	_, stored, err := made.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stored.Close() }()
	if got, err := io.ReadAll(stored); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes came back of %d: %v", len(got), len(data), err)
	}
	cancelled := create(2)
	if _, err := cancelled.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := cancelled.Cancel(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(made.dir); len(left) != 1 {
		t.Fatalf("a cancelled snapshot left files: %v", left)
	}
}

// restingClock fires every timer at once.
type restingClock struct {
	*clock.Manual
	rests []time.Duration
}

func (c *restingClock) After(d time.Duration) <-chan time.Time {
	c.rests = append(c.rests, d)
	c.Advance(d)
	return c.Manual.After(0)
}

func TestWritersOfSnapshotsRest(t *testing.T) {
	now := &restingClock{Manual: clock.NewManual(time.Unix(1, 0))}
	var out bytes.Buffer
	w := &pacedWriter{to: &out, clock: now}
	for _, worked := range []time.Duration{time.Hour, time.Millisecond, 0, longestRest + 1, 1} {
		now.Advance(worked)
		if n, err := w.Write([]byte("piece ")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
	}
	want := []time.Duration{time.Millisecond, longestRest, 1}
	if !slices.Equal(now.rests, want) {
		t.Errorf("it rested %v, want %v", now.rests, want)
	}
	if out.Len() != 5*6 {
		t.Errorf("%q was written", out.String())
	}
}

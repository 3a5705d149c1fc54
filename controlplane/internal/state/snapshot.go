package state

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/controlplane/internal/codec"
)

// SnapshotVersion is the newest readable version. Every version ever released stays readable
// (testdata). The version written is the cluster's. A binary refuses a state of a later version,
// instead of dropping data that it does not know.
const SnapshotVersion = 2

// Snapshot is the whole state at a moment.
type Snapshot struct {
	view   *View
	runs   []savedRun // in any order, as are their lists
	failed error      // the error of saveRuns
	header snapshotHeader
}

type snapshotHeader struct {
	Version    int    `cbor:"1,keyasint"`
	Index      uint64 `cbor:"2,keyasint"`
	Now        int64  `cbor:"3,keyasint"`
	Dispatched uint64 `cbor:"4,keyasint"`
}

// section precedes the records of a table, or the runs.
type section struct {
	Name  string `cbor:"1,keyasint"`
	Count int    `cbor:"2,keyasint"`
}

const runsSection = "runs"

// Snapshot takes the current state. It must not run beside Update, so commands wait for it. It
// copies the sets of open runs, which change in place, and leaves sorting to Write.
func (s *Store) Snapshot() *Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	view := s.View()
	snap := &Snapshot{view: view,
		header: snapshotHeader{Version: int(view.ClusterVersion()), Index: s.index, Now: s.now,
			Dispatched: s.dispatched}}
	snap.runs, snap.failed = saveRuns(s.runs)
	return snap
}

// Write writes the snapshot. Equal states give equal bytes.
func (s *Snapshot) Write(w io.Writer) error {
	if s.failed != nil {
		return fmt.Errorf("state: snapshot: %w", s.failed)
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	encMode, _ := codec.New().Modes()
	enc := encMode.NewEncoder(buffered)
	if err := enc.Encode(s.header); err != nil {
		return fmt.Errorf("state: snapshot header: %w", err)
	}
	for _, t := range tables() {
		if err := t.write(enc, s.view); err != nil {
			return fmt.Errorf("state: snapshot of table %s: %w", t.name, err)
		}
	}
	if err := enc.Encode(section{Name: runsSection, Count: len(s.runs)}); err != nil {
		return fmt.Errorf("state: snapshot of runs: %w", err)
	}
	slices.SortFunc(s.runs, func(a, b savedRun) int { return bytes.Compare(a.Job[:], b.Job[:]) })
	for i := range s.runs {
		s.runs[i].sort()
		if s.header.Version >= 2 {
			s.runs[i].pack()
		}
		if err := enc.Encode(&s.runs[i]); err != nil {
			return fmt.Errorf("state: snapshot of run %s: %w", s.runs[i].Job, err)
		}
	}
	return buffered.Flush()
}

// write writes a table's records as a section.
func (k *kind) write(enc *cbor.Encoder, v *View) error {
	all := contentOf(v.tables, k).trees[k.id]
	if all.Len() == 0 && k.since > 1 {
		return nil // so that older nodes can read the snapshot while the table is empty
	}
	if err := enc.Encode(section{Name: k.name, Count: all.Len()}); err != nil {
		return err
	}
	var err error
	written, into := 0, k.empty()
	scan(all, "", false, func(record any) bool {
		if written++; written%yieldAfter == 0 {
			runtime.Gosched()
		}
		err = enc.Encode(k.encoded(record, into))
		return err == nil
	})
	return err
}

// yieldAfter is the number of records written before commands get a turn. Otherwise a waiting
// command would get a core only after 10 ms.
const yieldAfter = 64

// Restore reads a snapshot into a new store.
func Restore(r io.Reader) (*Store, error) {
	_, decMode := codec.New().Modes()
	dec := decMode.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	var header snapshotHeader
	if err := dec.Decode(&header); err != nil {
		return nil, fmt.Errorf("state: snapshot header: %w", err)
	}
	if header.Version < 1 || header.Version > SnapshotVersion {
		return nil, fmt.Errorf("state: snapshot version %d is not known here (up to %d)",
			header.Version, SnapshotVersion)
	}
	s := NewStore()
	s.index, s.now, s.dispatched = header.Index, header.Now, header.Dispatched
	tx := s.beginTx(header.Index)
	byName := map[string]*kind{}
	for _, t := range tables() {
		byName[t.name] = t
	}
	for {
		var head section
		if err := dec.Decode(&head); err != nil {
			return nil, fmt.Errorf("state: snapshot is cut short: %w", err)
		}
		if head.Name == runsSection {
			if err := s.restoreRuns(dec, head.Count); err != nil {
				return nil, err
			}
			if err := tx.join(); err != nil {
				return nil, err
			}
			tx.commit()
			if view := s.View(); view.Cluster() != nil {
				s.version.Store(view.ClusterVersion())
			}
			return s, nil
		}
		t, known := byName[head.Name]
		if !known {
			return nil, fmt.Errorf("state: snapshot holds an unknown table %q", head.Name)
		}
		if err := tx.restoreTable(dec, t, head.Count); err != nil {
			return nil, err
		}
	}
}

func (s *Store) restoreRuns(dec *cbor.Decoder, count int) error {
	for range count {
		var saved savedRun
		if err := dec.Decode(&saved); err != nil {
			return fmt.Errorf("state: snapshot of runs: %w", err)
		}
		run, err := saved.run()
		if err != nil {
			return err
		}
		s.runs[run.Job] = run
	}
	return nil
}

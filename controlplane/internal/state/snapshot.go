package state

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// SnapshotVersion is the newest version that is read. Every version ever released stays readable (testdata). What is written
// is the cluster's version: a binary that cannot apply what made the state refuses it, and does not drop what it does not
// know.
const SnapshotVersion = 2

// Snapshot is the whole state at one moment.
type Snapshot struct {
	view   *View
	runs   []*Run
	header snapshotHeader
}

type snapshotHeader struct {
	Version    int    `cbor:"1,keyasint"`
	Index      uint64 `cbor:"2,keyasint"`
	Now        int64  `cbor:"3,keyasint"`
	Dispatched uint64 `cbor:"4,keyasint"`
}

// section precedes a table's records, or the runs.
type section struct {
	Name  string `cbor:"1,keyasint"`
	Count int    `cbor:"2,keyasint"`
}

const runsSection = "runs"

// Snapshot takes the state as it is now. It must not run beside Update.
func (s *Store) Snapshot() *Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	view := s.View()
	snap := &Snapshot{view: view,
		header: snapshotHeader{Version: int(view.ClusterVersion()), Index: s.index, Now: s.now, Dispatched: s.dispatched}}
	for _, id := range slices.SortedFunc(maps.Keys(s.runs), func(a, b ids.ID) int { return slices.Compare(a[:], b[:]) }) {
		snap.runs = append(snap.runs, s.runs[id].clone())
	}
	return snap
}

// Write writes the snapshot. Equal states give equal bytes.
func (s *Snapshot) Write(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	encMode, _ := codec.New().Modes()
	enc := encMode.NewEncoder(buffered)
	if err := enc.Encode(s.header); err != nil {
		return fmt.Errorf("state: snapshot header: %w", err)
	}
	for _, t := range tableList() {
		if err := writeTable(enc, s.view, t.Name); err != nil {
			return fmt.Errorf("state: snapshot of table %s: %w", t.Name, err)
		}
	}
	if err := enc.Encode(section{Name: runsSection, Count: len(s.runs)}); err != nil {
		return fmt.Errorf("state: snapshot of runs: %w", err)
	}
	for _, run := range s.runs {
		saved, err := run.save()
		if err != nil {
			return err
		}
		if err := enc.Encode(saved); err != nil {
			return fmt.Errorf("state: snapshot of run %s: %w", run.Job, err)
		}
	}
	return buffered.Flush()
}

func writeTable(enc *cbor.Encoder, v *View, name string) error {
	count := 0
	rows, err := v.txn.Get(name, "id_prefix")
	if err != nil {
		return err
	}
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		count++
	}
	if count == 0 && sinceVersion2(name) {
		return nil // nodes of before read what holds nothing of it
	}
	if err := enc.Encode(section{Name: name, Count: count}); err != nil {
		return err
	}
	if rows, err = v.txn.Get(name, "id_prefix"); err != nil {
		return err
	}
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		if err := enc.Encode(raw); err != nil {
			return err
		}
	}
	return nil
}

// decoders makes an empty record of each table.
func decoders() map[string]func() any {
	return map[string]func() any{
		"cluster": func() any { return new(Cluster) }, "nodes": func() any { return new(Node) },
		"shards": func() any { return new(Shard) }, "customers": func() any { return new(Customer) },
		"keys": func() any { return new(Key) }, "groups": func() any { return new(Group) },
		"scrapers": func() any { return new(Scraper) }, "recipes": func() any { return new(Recipe) },
		"jobs": func() any { return new(Job) }, "prices": func() any { return new(PriceTable) },
		"wallets": func() any { return new(Wallet) }, "entries": func() any { return new(Entry) },
		"claims": func() any { return new(Claim) }, "results": func() any { return new(StoredResult) },
		"books": func() any { return new(Books) }, "schemas": func() any { return new(Schema) },
		"previews": func() any { return new(Preview) }, "dailies": func() any { return new(Daily) },
		"undone": func() any { return new(Undone) }, "revoked": func() any { return new(Revoked) },
	}
}

// Restore reads a snapshot into a new store.
func Restore(r io.Reader) (*Store, error) {
	_, decMode := codec.New().Modes()
	dec := decMode.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	var header snapshotHeader
	if err := dec.Decode(&header); err != nil {
		return nil, fmt.Errorf("state: snapshot header: %w", err)
	}
	if header.Version < 1 || header.Version > SnapshotVersion {
		return nil, fmt.Errorf("state: snapshot version %d is not known here (up to %d)", header.Version, SnapshotVersion)
	}
	s := NewStore()
	s.index, s.now, s.dispatched = header.Index, header.Now, header.Dispatched
	txn := s.db.Txn(true)
	defer txn.Abort()
	makers := decoders()
	for {
		var head section
		if err := dec.Decode(&head); err != nil {
			return nil, fmt.Errorf("state: snapshot is cut short: %w", err)
		}
		if head.Name == runsSection {
			if err := s.restoreRuns(dec, head.Count); err != nil {
				return nil, err
			}
			txn.Commit()
			if view := s.View(); view.Cluster() != nil {
				s.version.Store(view.ClusterVersion())
			}
			return s, nil
		}
		maker, known := makers[head.Name]
		if !known {
			return nil, fmt.Errorf("state: snapshot holds an unknown table %q", head.Name)
		}
		for range head.Count {
			record := maker()
			if err := dec.Decode(record); err != nil {
				return nil, fmt.Errorf("state: snapshot of table %s: %w", head.Name, err)
			}
			if err := txn.Insert(head.Name, record); err != nil {
				return nil, fmt.Errorf("state: restore of table %s: %w", head.Name, err)
			}
			s.sum += s.summer.record(head.Name, record)
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

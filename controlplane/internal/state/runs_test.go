package state

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// fastRun has a million seqs, and as many out as 20,000 pages/s bring in two seconds.
func fastRun() *Run {
	random := rand.New(rand.NewPCG(1, 2))
	run := NewRun(ids.ID{7})
	for number := range uint64(40_000) {
		out := &Out{Number: 1<<33 + number, Attempt: 1, Grant: 1, Price: 1000}
		if number%100 == 0 {
			out.Attempt, out.Price = 2, 5000
		}
		run.Out[random.Uint32N(1_000_000)] = out
	}
	for _, out := range run.Out {
		run.Reserved += out.Money()
	}
	return run
}

func snapshotWith(t *testing.T, run *Run, version int) (*Snapshot, []byte) {
	t.Helper()
	s := NewStore()
	if err := s.Update(1, 0, func(tx *Tx) error { tx.AddRun(run); return nil }); err != nil {
		t.Fatal(err)
	}
	snap := s.Snapshot()
	snap.header.Version = version
	var b bytes.Buffer
	if err := snap.Write(&b); err != nil {
		t.Fatal(err)
	}
	return snap, b.Bytes()
}

// A run of a million addresses must fit into 1 MiB, including its closed set of 125 KB.
func TestSeqsThatAreOutTakeLittle(t *testing.T) {
	run := fastRun()
	_, data := snapshotWith(t, run, SnapshotVersion)
	if each := float64(len(data)) / float64(len(run.Out)); each > 8 {
		t.Errorf("a seq that is out takes %.1f bytes of a snapshot, at most 8", each)
	}
	snap, older := snapshotWith(t, run, 1)
	if saved := snap.runs[0]; saved.Alike != nil || len(saved.Out) != len(run.Out) {
		t.Error("a snapshot of version 1 has what its binaries do not read")
	}
	for _, data := range [][]byte{data, older} {
		restored, err := Restore(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		got := restored.runs[run.Job]
		if d := cmp.Diff(run.Out, got.Out); d != "" || got.Reserved != run.Reserved {
			t.Errorf("%d held, want %d: %s", got.Reserved, run.Reserved, d)
		}
	}
}

func TestSeqsOutThatAreCutShortAreRefused(t *testing.T) {
	saved := savedRun{Out: []savedOut{{Chain: savedChain{Seq: 70_000}, Number: 1 << 40, Grant: 1}}}
	saved.pack()
	units := saved.Alike[0].Units
	for length := 1; length < len(units); length++ {
		cut := savedAlike{Units: units[:length]}
		if all, err := cut.unpack(nil); err == nil {
			t.Errorf("%d of %d bytes are read as %v", length, len(units), all)
		}
	}
}

// A seq that continues on another page, or counts towards a daily limit, is not packed.
func TestWhatIsOutOnItsOwnStaysWhole(t *testing.T) {
	saved := savedRun{Out: []savedOut{{Chain: savedChain{From: &model.Continuation{Page: 2}}},
		{Read: &Read{Day: 3}}, {Grant: 1}}}
	saved.pack()
	if len(saved.Out) != 2 || len(saved.Alike) != 1 {
		t.Errorf("%d whole and %d alike, want 2 and 1", len(saved.Out), len(saved.Alike))
	}
}

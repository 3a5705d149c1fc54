package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestALateDropChangesNothing: a paused leader, or one of another generation, drops nothing that
// the archive may lack.
func TestALateDropChangesNothing(t *testing.T) {
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	d.must(command.AdjustWalletPayload{Customer: customer, Entry: d.id(), Amount: 1 << 40})
	d.must(command.PutPricesPayload{Rows: testPrices})
	put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
		Spec: recipe(1)}
	d.must(put)
	next := func() command.DropArchivedPayload {
		batch, err := archive.Next(d.m.Store().View(), 2_000)
		if err != nil {
			t.Fatal(err)
		}
		return command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
			Upto: batch.Upto, Keep: 1}
	}
	d.run(customer, put.ID, "one")
	d.run(customer, put.ID, "two")
	first := next()
	d.must(first)
	upto := d.m.Store().View().ArchivedTo()
	if upto != first.Upto || upto == 0 {
		t.Fatalf("archived to %d, want %d", upto, first.Upto)
	}
	d.run(customer, put.ID, "three")
	second := next()
	stale, foreign := second, second
	stale.From = first.From
	foreign.Generation[0]++
	for name, drop := range map[string]command.DropArchivedPayload{"again": first,
		"paused": stale, "of another generation": foreign} {
		d.must(drop)
		if now := d.m.Store().View().ArchivedTo(); now != upto {
			t.Errorf("%s: archived to %d, want %d", name, now, upto)
		}
	}
	d.must(second)
	if now := d.m.Store().View().ArchivedTo(); now != second.Upto {
		t.Errorf("archived to %d, want %d", now, second.Upto)
	}
}

// TestPastRunsOfAScraperAreSmall: for runs that left the state a scraper keeps 100 bytes, however
// many rows its last ten runs had.
func TestPastRunsOfAScraperAreSmall(t *testing.T) {
	for _, rows := range []uint64{0, 500_000, 524_288, 8_000_000_000} {
		var source ids.Sequence
		scraper := &state.Scraper{ID: source.New(), Group: source.New()}
		var past *state.PastRuns
		for n := range 40 {
			job := &state.Job{ID: source.New(), Group: scraper.Group, State: model.Completed,
				Queued: 1_790_000_000_000 + int64(n), Items: rows}
			scraper.LastJob = job.ID
			past = past.Add(job, scraper, false)
		}
		encoded, err := codec.New().Marshal(past)
		if err != nil || len(encoded) > 100 {
			t.Errorf("%d bytes of runs of %d rows, %v", len(encoded), rows, err)
		}
	}
}

package fsm

import (
	"fmt"
	"slices"
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

// TestExpiredRunsLeaveTheState: runs that the history expired leave the state, once each. Others
// stay, whatever a command names. Their scraper and their customer still count them.
func TestExpiredRunsLeaveTheState(t *testing.T) {
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	d.must(command.AdjustWalletPayload{Customer: customer, Entry: d.id(), Amount: 1 << 40})
	d.must(command.PutPricesPayload{Rows: testPrices})
	put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
		Spec: recipe(1)}
	d.must(put)
	d.run(customer, put.ID, "one")
	batch, err := archive.Next(d.m.Store().View(), 2_000)
	if err != nil {
		t.Fatal(err)
	}
	d.must(command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
		Upto: batch.Upto, Keep: 10})
	d.run(customer, put.ID, "two")
	list := func() (runs []ids.ID) {
		d.m.Store().View().CustomerJobs(customer, func(job *state.Job) bool {
			runs = append(runs, job.ID)
			return true
		})
		return runs
	}
	runs := list() // newest first
	if len(runs) != 2 {
		t.Fatalf("%d runs before, want 2", len(runs))
	}
	d.must(command.ExpireRunsPayload{Runs: []ids.ID{runs[1], runs[0], d.id(), runs[1]}})
	if left := list(); !slices.Equal(left, runs[:1]) {
		t.Errorf("%v are left, want %v", left, runs[:1])
	}
	view := d.m.Store().View()
	if past := view.Scraper(put.ID).Past; past == nil || len(past.Ended) != 1 {
		t.Errorf("the scraper counts %+v", past)
	}
	if !view.Customer(customer).Ran {
		t.Error("the customer has never launched a run")
	}
}

// TestOldOpenRunsHoldUpNoDrop: short runs and their entries leave the state, however many older
// runs are open. When these end, no command removes much more than it archives.
func TestOldOpenRunsHoldUpNoDrop(t *testing.T) {
	const long, short, keep, cuts = 300, 1_000, 10, 100
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	d.must(command.AdjustWalletPayload{Customer: customer, Entry: d.id(), Amount: 1 << 40})
	d.must(command.PutPricesPayload{Rows: testPrices})
	scraper := func(n int) ids.ID {
		put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer,
			Group: group, Spec: recipe(1)}
		put.Spec.Name = fmt.Sprint(n)
		d.must(put)
		return put.ID
	}
	count := func() (jobs, entries int) {
		view := d.m.Store().View()
		view.CustomerJobs(customer, func(*state.Job) bool { jobs++; return true })
		view.Entries(customer, func(*state.Entry) bool { entries++; return true })
		return jobs, entries
	}
	drop := func(wantJobs, wantEntries int) {
		t.Helper()
		batch, err := archive.Next(d.m.Store().View(), 3_000)
		if err != nil || batch.More {
			t.Fatal(batch.More, err)
		}
		from := batch.From
		for some := range slices.Chunk(batch.Cuts, cuts) { // as the leader does
			jobs, entries := count()
			d.must(command.DropArchivedPayload{Generation: batch.Generation, From: from,
				Upto: some[len(some)-1], Keep: keep})
			from = some[len(some)-1]
			jobsLeft, entriesLeft := count()
			if jobs-jobsLeft > cuts+keep || entries-entriesLeft > cuts+keep {
				t.Errorf("one command removes %d runs and %d entries", jobs-jobsLeft,
					entries-entriesLeft)
			}
		}
		if jobs, entries := count(); jobs != wantJobs || entries != wantEntries {
			t.Errorf("%d runs and %d entries are left, want %d and %d", jobs, entries, wantJobs,
				wantEntries)
		}
	}
	var open []ids.ID
	for n := range long {
		open = append(open, d.launch(customer, scraper(n), fmt.Sprint("long ", n)))
	}
	quick := scraper(long)
	for n := range short {
		d.run(customer, quick, fmt.Sprint("short ", n))
	}
	drop(long+keep, long+keep)
	for _, job := range open {
		d.end(job)
	}
	drop(keep, keep)
}

// TestPastRunsOfAScraperAreSmall: for runs that left the state a scraper keeps 100 bytes, however
// many rows its last ten runs had. The groups that it was moved out of come on top.
func TestPastRunsOfAScraperAreSmall(t *testing.T) {
	for _, rows := range []uint64{0, 500_000, 524_288, 8_000_000_000} {
		for _, moves := range []int{0, 1, state.MaxPastGroups, 2 * state.MaxPastGroups} {
			var source ids.Sequence
			scraper := &state.Scraper{ID: source.New(), Group: source.New()}
			var past *state.PastRuns
			for n := range max(40, moves) {
				job := &state.Job{ID: source.New(), Group: scraper.Group, State: model.Completed,
					Queued: 1_790_000_000_000 + int64(n), Items: rows}
				scraper.LastJob = job.ID
				past = past.Add(job, scraper, false)
				if n < moves {
					past, scraper.Group = past.Left(scraper.Group), source.New()
				}
			}
			most := 100
			if moves > 0 {
				past = past.Left(scraper.Group) // its last run stays there
				most += 14 + 3 + 13*min(moves+1, state.MaxPastGroups)
			}
			encoded, err := codec.New().Marshal(past)
			if err != nil || len(encoded) > most {
				t.Errorf("%d bytes of runs of %d rows after %d moves, want %d: %v", len(encoded),
					rows, moves, most, err)
			}
		}
	}
}

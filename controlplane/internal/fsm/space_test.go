package fsm

import (
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// While disks are short no new data is accepted, and refusals are not kept. Work under way
// continues. The last report counts, in any order and repetition.
func TestNothingIsTakenInWithoutSpace(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 3)
	running, err := b.launch(members[0])
	if err != nil {
		t.Fatal(err)
	}
	b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: running.Job,
		Seqs: []uint32{0}}}})
	short := command.NoteSpacePayload{Short: strings.Repeat("x", command.MaxShortBytes)}
	b.refused(command.NoteSpacePayload{Short: short.Short + "x"}, fault.InvalidRequest)
	if b.view().IsShort() {
		t.Error("what was refused is in the state")
	}
	for range 2 {
		b.must(short)
		if !b.view().IsShort() || b.view().Cluster().Short != short.Short {
			t.Fatal("nobody knows that disks are short")
		}
	}
	launch := command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: "a",
		Scraper: members[1], List: b.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	claim := command.ClaimCallPayload{List: ids.ID{7}, Node: "n"}
	refusals := map[string]command.Payload{"run": launch, "group": b.groupLaunch(group, members[2]),
		"schema": command.PutSchemaPayload{ID: b.ids.New(), Customer: "a", Type: "PRODUCT"},
		"claim":  claim}
	for key, payload := range refusals {
		for n := range byte(2) {
			if r := b.under(key, ids.ID{80 + n, key[0]}, payload); fault.CodeOf(r.Err) !=
				fault.OutOfSpace {
				t.Errorf("%s: %+v", key, r)
			}
		}
		if b.view().Claim("a", "run", key) != nil {
			t.Errorf("%s: the refusal is kept", key)
		}
	}
	// Calls without lists are claimed, and money moves.
	b.under("top-up", ids.ID{90}, command.ClaimCallPayload{Node: "n"})
	if b.view().Claim("a", "run", "top-up") == nil {
		t.Error("a call without a list is not claimed")
	}
	b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: 1_000_000})
	b.must(command.SettlePayload{Receipts: []model.Receipt{{Job: running.Job, Last: true,
		Outcome: model.Delivered, PriceRow: model.Plain.PriceRow(), Quantity: 1}}})
	b.must(command.CloseRunPayload{Job: running.Job})
	if job := b.view().Job(running.Job); !job.Closed || job.Delivered != 1 {
		t.Errorf("what was under way ended as %+v", job)
	}
	for range 2 {
		b.must(command.NoteSpacePayload{})
	}
	for key, payload := range refusals {
		if r := b.under(key, ids.ID{100, key[0]}, payload); r.Err != nil || r.Replayed {
			t.Errorf("%s, with room: %+v", key, r)
		}
	}
}

// A due start waits; its skipped scrapers are recorded all the same.
func TestDueStartsWaitForSpace(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	one := b.scheduled(group, "one")
	b.moves(b.move(one, 60, 0))
	b.moves(b.move(one, 120, 60))
	item := b.view().WorkOf(work.Launch, "a")[0]
	p := b.groupLaunch(ids.ID{}, one)
	p.Item = &command.LaunchItem{ID: item.ID, From: item.Cursor, Upto: []byte{0, 1}, Done: true}
	b.must(command.NoteSpacePayload{Short: "voter-1"})
	if answer := b.must(p).(command.LaunchedRuns); len(answer.Jobs)+len(answer.Skipped) != 0 ||
		b.view().WorkItem(item.ID) == nil {
		t.Errorf("without room: %+v", answer)
	}
	b.must(command.NoteSpacePayload{})
	if answer := b.must(p).(command.LaunchedRuns); len(answer.Jobs) != 1 ||
		b.view().WorkItem(item.ID) != nil {
		t.Errorf("with room: %+v", answer)
	}
	if again := b.must(p).(command.LaunchedRuns); len(again.Jobs) != 0 {
		t.Errorf("again: %+v", again)
	}
	b.moves(b.move(one, 180, 120))
	item = b.view().WorkOf(work.Launch, "a")[0]
	b.must(command.NoteSpacePayload{Short: "voter-1"})
	skip := command.LaunchRunsPayload{Customer: "a",
		Item:    &command.LaunchItem{ID: item.ID, From: item.Cursor, Done: true},
		Skipped: []command.SkippedScraper{{Scraper: one, Reason: state.SkipNoSource}}}
	if answer := b.must(skip).(command.LaunchedRuns); len(answer.Skipped) != 1 ||
		b.view().WorkItem(item.ID) != nil {
		t.Errorf("what launches nothing: %+v", answer)
	}
}

package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func (b *bench) askExport(customer string) ids.ID {
	b.t.Helper()
	return b.must(command.AskExportPayload{ID: b.ids.New(), Customer: customer, Owner: customer,
		Request: []byte("{}"), Kept: 1_000}).(state.Export).ID
}

// An export is asked for once and ends once, in any order and repetition.
func TestExportEndsOnce(t *testing.T) {
	b := newBench(t)
	ask := command.AskExportPayload{ID: b.ids.New(), Customer: "a", Owner: "a",
		Request: []byte("{}"), Kept: 1_000}
	end := command.EndExportPayload{ID: ask.ID, Blob: b.ids.New(), Bytes: 7, Rows: 2,
		Digest: []byte{1}}
	b.refused(end, fault.NotFound) // before it is asked for
	for range 2 {
		if e := b.must(ask).(state.Export); e.State != state.ExportWaiting {
			t.Errorf("%+v", e)
		}
	}
	if b.view().WorkItem(ask.ID) == nil {
		t.Error("nobody is going to write it")
	}
	other := end
	other.Blob = b.ids.New()
	failed := command.EndExportPayload{ID: ask.ID, Code: "not_found"}
	for _, p := range []command.EndExportPayload{end, other, failed, end} {
		if e := b.must(p).(state.Export); e.State != state.ExportReady || e.Blob != end.Blob ||
			e.EndedAt != b.now {
			t.Errorf("%+v", e)
		}
	}
	if e := b.must(ask).(state.Export); e.State != state.ExportReady {
		t.Error("asked for again, it waits again")
	}
	b.refused(command.DropExportPayload{ID: ask.ID, Customer: "b"}, fault.NotFound)
	if b.view().Export(ask.ID) == nil {
		t.Error("another customer has dropped it")
	}
	b.must(command.DropExportPayload{ID: ask.ID, Customer: "a"})
	b.refused(command.DropExportPayload{ID: ask.ID, Customer: "a"}, fault.NotFound)
	if b.view().Export(ask.ID) != nil || b.view().WorkItem(ask.ID) != nil {
		t.Error("it is there still")
	}
	b.refused(end, fault.NotFound)
}

// A customer's exports are bounded by number and by bytes, exactly.
func TestExportsAreBounded(t *testing.T) {
	b := newBench(t)
	first, second := b.askExport("a"), b.askExport("a")
	ready := func(id ids.ID, bytes int64) state.Export {
		return b.must(command.EndExportPayload{ID: id, Blob: b.ids.New(),
			Bytes: bytes}).(state.Export)
	}
	if e := ready(first, command.MaxExportBytes-1); e.State != state.ExportReady {
		t.Errorf("%+v", e)
	}
	if e := ready(second, 2); e.State != state.ExportFailed || e.Code != "limit_reached" ||
		!e.Blob.IsZero() {
		t.Errorf("a byte too many: %+v", e)
	}
	if e := ready(b.askExport("a"), 1); e.State != state.ExportReady {
		t.Errorf("the last byte: %+v", e)
	}
	ask := command.AskExportPayload{ID: b.ids.New(), Customer: "a", Request: []byte("{}"), Kept: 1}
	b.refused(ask, fault.LimitReached)
	b.must(command.DropExportPayload{ID: first, Customer: "a"})
	for len(b.view().Exports("a")) < command.MaxExports {
		b.askExport("a")
	}
	b.refused(ask, fault.LimitReached)
	b.askExport("b")
	ask.Customer, ask.Request = "b", make([]byte, command.MaxExportRequest+1)
	b.refused(ask, fault.InvalidRequest)
	ask.Request, ask.Groups = nil, make([]ids.ID, command.MaxExportGroups+1)
	b.refused(ask, fault.InvalidRequest)
	ask.Groups = nil
	b.must(command.NoteSpacePayload{Short: "row store"})
	b.refused(ask, fault.OutOfSpace)
	b.now += 1_000
	b.must(command.TickPayload{})
	if n := len(b.view().Exports("a")) + len(b.view().Exports("b")); n != 0 {
		t.Errorf("%d are there when their time is over", n)
	}
	b.must(command.BlockCustomerPayload{Customer: "b", By: "root"})
	b.must(command.NoteSpacePayload{})
	b.refused(ask, fault.CustomerBlocked)
}

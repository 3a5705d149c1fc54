package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// deletionOf returns the deletion of a run's rows by the customer a.
func deletionOf(job ids.ID, s state.Scraper) command.Deletion {
	return command.Deletion{Customer: "a", Operation: command.OpDeleteRun, Target: job,
		Run: &command.DeletedRun{Group: s.Group, Scraper: s.ID}}
}

// Repeats and other orders change nothing: a run's rows are deleted once, and the mark is dropped
// when they are removed.
func TestRunIsDeletedOnce(t *testing.T) {
	b := newBench(t)
	s := b.scraper("s", b.schema("a", ids.ID{}, 1, "{}").ID)
	launched, err := b.launch(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	d := deletionOf(launched.Job, s)
	removed := command.NoteRowsRemovedPayload{Jobs: []ids.ID{launched.Job, b.ids.New()}}
	forget := command.ForgetDeletedRunsPayload{Before: 1 << 40}
	b.must(removed) // before the deletion
	b.must(forget)
	foreign, nameless := d, d
	foreign.Customer, nameless.Run = "b", nil
	for _, refused := range []command.Deletion{foreign, nameless} {
		b.refused(command.PreviewDeletePayload{Deletion: refused, Token: "t"}, fault.JobNotFound)
		b.refused(command.DeleteRunPayload{Deletion: refused, Token: "t"}, fault.JobNotFound)
	}
	b.refused(command.DeleteRunPayload{Deletion: d}, fault.PreviewRequired)
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	other := d
	other.Rows++
	b.refused(command.DeleteRunPayload{Deletion: other, Token: "t"}, fault.CascadeDrift)
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteRunPayload{Deletion: d, Token: "t"})
	b.refused(command.DeleteRunPayload{Deletion: d, Token: "t"}, fault.JobNotFound)
	v := b.view()
	if held := v.DeletedIn(s.Group); len(held) != 1 || held[0] != launched.Job ||
		!v.Job(launched.Job).State.Final() {
		t.Errorf("%v is hidden, the run is %+v", held, v.Job(launched.Job))
	}
	b.must(forget) // it stays while it has rows
	b.now = 77
	for range 2 {
		b.must(removed)
		b.now++
		if mark := b.view().DeletedRun(launched.Job); mark == nil || mark.Removed != 77 {
			t.Errorf("the mark is %+v", mark)
		}
	}
	if held := b.view().DeletedIn(s.Group); len(held) > 0 {
		t.Errorf("%v is hidden though it has no rows", held)
	}
	b.must(command.ForgetDeletedRunsPayload{Before: 77})
	if b.view().DeletedRun(launched.Job) == nil {
		t.Error("it is forgotten too early")
	}
	for range 2 {
		b.must(forget)
		if marks := b.view().DeletedRunsOf("a"); len(marks) > 0 {
			t.Errorf("%v is kept", marks)
		}
	}
}

// A customer's marks are bounded. The run that becomes the last one must not be deleted meanwhile.
func TestDeletedRunsAreBounded(t *testing.T) {
	b := newBench(t)
	s := b.scraper("s", b.schema("a", ids.ID{}, 1, "{}").ID)
	gone := func(next ids.ID) command.DeleteRunPayload {
		d := deletionOf(b.ids.New(), s) // of a run that has left the state
		d.Run.Next = next
		b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
		return command.DeleteRunPayload{Deletion: d, Token: "t"}
	}
	first := gone(ids.ID{})
	b.must(first)
	b.refused(gone(first.Deletion.Target), fault.CascadeDrift)
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for range maxDeletedRuns - 2 {
			tx.PutDeletedRun(&state.DeletedRun{Job: b.ids.New(), Customer: "a", Group: s.Group})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.must(gone(ids.ID{}))
	b.refused(gone(ids.ID{}), fault.LimitReached)
	var jobs []ids.ID
	for _, d := range b.view().DeletedRunsOf("a") {
		jobs = append(jobs, d.Job)
	}
	b.must(command.NoteRowsRemovedPayload{Jobs: jobs})
	b.must(command.ForgetDeletedRunsPayload{Before: b.now + 1})
	if left := len(b.view().DeletedRunsOf("a")); left != maxDeletedRuns-maxForgottenRuns {
		t.Errorf("%d are left", left)
	}
}

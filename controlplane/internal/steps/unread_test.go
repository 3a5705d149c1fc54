package steps_test

import (
	"context"
	"errors"
	"testing"

	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// badList is a row store that cannot read one list for a while.
type badList struct {
	emptyStore
	list  *ids.ID
	tries *int
}

func (s badList) Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	if list == *s.list {
		*s.tries++
		return nil, errUnread
	}
	return s.emptyStore.Links(ctx, list, from, most)
}

func (s badList) LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	if list == *s.list {
		*s.tries++
		return nil, errUnread
	}
	return s.emptyStore.LinksAt(ctx, list, seqs)
}

// An unreadable list does not hold up other runs, in its shards or elsewhere. It is read again
// later, and then its own run goes on.
func TestListThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	const links = 3000
	l, ctx := newLoop(t, links), t.Context()
	first := l.view().Job(l.job)
	second := l.launchSecond(t, links)
	reads, tries, bad, told := 0, 0, ids.ID{}, 0
	l.Store = badList{emptyStore{webList{links: links}, &reads}, &bad, &tries}
	l.Unread = func(err error) {
		if told++; !errors.Is(err, errUnread) {
			t.Errorf("told: %v", err)
		}
	}
	out := func() {
		t.Helper()
		for range 100 {
			if _, err := l.Extend(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	sent := func() map[ids.ID]int {
		t.Helper()
		l.log.receipts = nil
		l.sendAll(t)
		of := map[ids.ID]int{}
		for _, receipt := range l.log.receipts {
			of[receipt.Job]++
		}
		return of
	}
	out()
	markers := l.sendAll(t)
	before := map[ids.ID]int{}
	for _, receipt := range l.log.receipts {
		before[receipt.Job]++
	}
	if err := l.Returned(ctx, markers...); err != nil { // everything is lost
		t.Fatal(err)
	}
	bad = first.List
	if of := sent(); of[second] != before[second] || of[l.job] != 0 {
		t.Errorf("%d and %d of %v went out again", of[second], of[l.job], before)
	}
	if told == 0 {
		t.Error("nobody hears of it")
	}
	if left := l.Dispatcher.Out(); left != before[second] {
		t.Errorf("%d are counted as out, want %d", left, before[second])
	}
	tries = 0
	out()
	if of := sent(); of[l.job] != 0 || tries != 0 {
		t.Errorf("%v were sent, after %d reads of the list", of, tries)
	}
	l.millis += dispatch.UnreadPause.Milliseconds()
	if did, err := l.Read(ctx); did || err != nil || tries != 1 {
		t.Errorf("after %d reads: %v, %v", tries, did, err)
	}
	bad = ids.ID{}
	l.millis += dispatch.UnreadPause.Milliseconds()
	if did, err := l.Read(ctx); !did || err != nil {
		t.Errorf("the list can be read: %v, %v", did, err)
	}
	counted := l.Dispatcher.Out()
	if of := sent(); of[l.job] != before[l.job] {
		t.Errorf("%d of %d went out again", of[l.job], before[l.job])
	}
	if more := counted - before[second]; more < before[l.job] {
		t.Errorf("%d more are counted as out, of %d", more, before[l.job])
	}
}

// The next links of an unreadable list are read again later, too.
func TestListThatCannotBeReadRests(t *testing.T) {
	const links = 20
	l, ctx := newLoop(t, links), t.Context()
	second := l.launchSecond(t, links)
	reads, tries, bad, told := 0, 0, l.view().Job(l.job).List, 0
	l.Store = badList{emptyStore{webList{links: links}, &reads}, &bad, &tries}
	l.Unread = func(error) { told++ }
	for range 10 {
		if _, err := l.Extend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	l.sendAll(t)
	if len(l.log.receipts) != links || l.log.receipts[0].Job != second || tries != 1 ||
		told != 1 {
		t.Errorf("%d are sent, after %d reads of the list of which %d were told",
			len(l.log.receipts), tries, told)
	}
	bad = ids.ID{}
	l.millis += dispatch.UnreadPause.Milliseconds()
	for range 10 {
		if _, err := l.Extend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	l.sendAll(t)
	if len(l.log.receipts) != 2*links {
		t.Errorf("%d are sent", len(l.log.receipts))
	}
}

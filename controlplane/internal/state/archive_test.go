package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestThePastKnowsWhereItsRowsLie: the newest shown run is found in the group where it ran,
// whatever moves came before and after.
func TestThePastKnowsWhereItsRowsLie(t *testing.T) {
	first, second := ids.ID{1}, ids.ID{2}
	scraper := &Scraper{ID: ids.ID{9}, Group: first}
	left := func(id byte, group ids.ID) {
		scraper.Past = scraper.Past.Add(&Job{ID: ids.ID{id}, Group: group, Queued: int64(id),
			State: model.Completed}, scraper, false)
	}
	move := func(to ids.ID) {
		scraper.Past, scraper.Group = scraper.Past.Left(scraper.Group), to
	}
	want := func(id byte, group ids.ID) {
		t.Helper()
		if got := scraper.Past.ShownRun(scraper.Group); got == nil || got.ID != (ids.ID{id}) ||
			got.Group != group || got.Queued != int64(id) {
			t.Errorf("run %+v is shown, want %d of group %v", got, id, group)
		}
	}
	if scraper.Past.ShownRun(scraper.Group) != nil {
		t.Error("a scraper without a past has a run to show")
	}
	left(1, first)
	want(1, first)
	move(second)
	want(1, first)
	left(2, first) // it ran before the move
	want(2, first)
	left(3, second)
	want(3, second)
	move(first)
	want(3, second)
	move(second)
	want(3, second)
	// a record from before the move also names the scraper's own group
	scraper.Past = &PastRuns{Shown: ids.ID{4}, Queued: 4, Group: second}
	want(4, second)
	move(first)
	want(4, second)
	// a run whose rows were deleted is replaced
	scraper.Past = scraper.Past.Show(&Job{ID: ids.ID{3}, Group: first, Queued: 3}, first)
	want(3, first)
	scraper.Past = scraper.Past.Add(&Job{ID: ids.ID{8}, Group: first, Queued: 8,
		State: model.Completed}, scraper, true)
	want(3, first)
	if !scraper.Past.Shows(ids.ID{3}) || scraper.Past.Shows(ids.ID{8}) {
		t.Errorf("shown is %+v", scraper.Past)
	}
	if none := scraper.Past.Show(&Job{}, first); none.ShownRun(first) != nil {
		t.Errorf("of no run %+v is shown", none)
	}
}

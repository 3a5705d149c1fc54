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

// result returns the command that makes rows from a group's rows.
func (b *bench) result(group ids.ID, made state.Made) command.BeginResultPayload {
	return command.BeginResultPayload{Job: b.ids.New(), Customer: "a", Group: group, Made: made,
		Kind: work.Merge, NewGroup: b.ids.New(), NewScraper: b.ids.New(), Args: []byte("args")}
}

// A result makes its group's sibling and a scraper in it once; a second one uses both. Neither
// counts towards a limit, and the sibling's name follows its group's.
func TestResultsHaveOneSibling(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 2)
	first := b.result(group, state.Enriched)
	for range 2 {
		begun := b.must(first).(command.BegunResult)
		if begun.Job != first.Job || begun.Group != first.NewGroup ||
			begun.Scraper != first.NewScraper {
			t.Errorf("%+v", begun)
		}
	}
	sibling := b.view().Sibling(group, state.Enriched)
	if sibling == nil || sibling.Name != "g_enriched" || sibling.StartType != "NONE" ||
		sibling.Scrapers != 1 || len(b.view().Groups("a")) != 2 || b.view().OwnGroups("a") != 1 {
		t.Fatalf("%+v", sibling)
	}
	count := 0
	b.view().Scrapers("a", func(*state.Scraper) bool { count++; return true })
	if count != len(members) {
		t.Errorf("%d scrapers are listed", count)
	}
	item := b.view().WorkItem(first.Job)
	if item == nil || item.Kind != work.Merge || string(item.Args) != "args" {
		t.Errorf("%+v", item)
	}
	b.refused(b.result(group, state.Enriched), fault.AlreadyRunning)
	b.must(command.EndImportPayload{Job: first.Job, Items: 3})
	b.must(first) // a late repeat
	second := b.result(group, state.Enriched)
	if begun := b.must(second).(command.BegunResult); begun.Group != sibling.ID ||
		begun.Scraper != first.NewScraper {
		t.Errorf("%+v", begun)
	}
	b.must(command.EndImportPayload{Job: second.Job, Items: 1, Hides: []ids.ID{first.Job}})
	b.must(command.PutGroupPayload{ID: group, Customer: "a", Name: strings.Repeat("n", 9),
		DataTable: strings.Repeat("t", 63), StartType: "MANUAL"})
	sibling = b.view().Sibling(group, state.Enriched)
	if sibling.Name != "nnnnnnnnn_enriched" || len(sibling.DataTable) != 63 ||
		!strings.HasSuffix(sibling.DataTable, "t_enriched") {
		t.Errorf("%+v", sibling)
	}
	own := command.PutGroupPayload{Create: true, ID: b.ids.New(), Customer: "a",
		Name: sibling.Name, DataTable: "t", StartType: "MANUAL",
		Cap: &command.PlanCap{Plan: "BASIC", Most: 2}}
	b.must(own) // neither its name nor its place is taken
}

// Only the service changes a sibling and what is in it.
func TestResultsAreNotChanged(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	first := b.result(group, state.Enriched)
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 3})
	b.refused(command.PutGroupPayload{ID: first.NewGroup, Customer: "a", Name: "x",
		DataTable: "x", StartType: "MANUAL"}, fault.InvalidRequest)
	b.refused(command.PutStartTypePayload{Customer: "a", Group: first.NewGroup,
		StartType: "DAILY"}, fault.InvalidRequest)
	b.refused(command.PutRetentionPayload{Customer: "a", Scraper: first.NewScraper, Count: 3},
		fault.InvalidRequest)
	b.refused(b.next(first.NewScraper), fault.InvalidRequest)
	b.refused(b.upload(first.NewGroup, "x"), fault.InvalidRequest)
	b.refused(command.PutScraperPayload{ID: first.NewScraper, Customer: "a", Group: group,
		Spec: model.Scraper{Name: "x", Type: model.File}}, fault.InvalidRequest)
	b.refused(b.result(first.NewGroup, state.Enriched), fault.InvalidRequest)
	b.refused(b.result(b.ids.New(), state.Enriched), fault.NotFound)
	other := b.result(group, "other")
	b.refused(other, fault.InvalidRequest)
	long := b.result(group, state.Enriched)
	long.Args = make([]byte, command.MaxResultArgs+1)
	b.refused(long, fault.InvalidRequest)
	foreign := b.result(group, state.Enriched)
	foreign.Customer = "b"
	b.refused(foreign, fault.NotFound)
}

// A group's siblings are deleted with it, and their runs stop.
func TestSiblingsGoWithTheirGroup(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	first := b.result(group, state.Enriched)
	b.must(first)
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group,
		Query: command.WithData}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteGroupPayload{Deletion: d, Token: "t"})
	if job := b.view().Job(first.Job); !job.Closed || job.State != model.Stopped {
		t.Errorf("%+v", job)
	}
	if len(b.view().Groups("a")) != 0 || b.view().Scraper(first.NewScraper) != nil ||
		b.view().DeletedGroup(first.NewGroup) == nil {
		t.Error("the sibling is there")
	}
}

// A merge without rows leaves no group, however it ends and however often that is reported. The
// next one starts over. An earlier merge's rows stay when a later one makes none.
func TestMergesWithoutRowsLeaveNothing(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	ends := map[string]func(of command.BeginResultPayload) command.Payload{
		"fails": func(of command.BeginResultPayload) command.Payload {
			return command.EndImportPayload{Job: of.Job, Message: "no title in two runs"}
		},
		"is stopped": func(of command.BeginResultPayload) command.Payload {
			return command.StopRunPayload{Customer: "a", Job: of.Job}
		},
		"is stopped with its scraper": func(of command.BeginResultPayload) command.Payload {
			return command.StopRunPayload{Customer: "a", Scraper: of.NewScraper}
		},
		"is stopped with its group": func(of command.BeginResultPayload) command.Payload {
			return command.StopGroupPayload{Customer: "a", Group: of.NewGroup}
		},
	}
	for name, end := range ends {
		merge := b.result(group, state.Enriched)
		b.must(merge)
		b.must(end(merge))
		b.must(merge) // a late repeat
		b.must(command.EndImportPayload{Job: merge.Job, Message: "late"})
		b.must(command.EndImportPayload{Job: merge.Job, Items: 1})
		v := b.view()
		if v.Sibling(group, state.Enriched) != nil || v.Scraper(merge.NewScraper) != nil ||
			len(v.Groups("a")) != 1 || len(v.DeletedGroupsOf("a")) != 0 ||
			v.Group(group).Scrapers != 1 {
			t.Errorf("a merge that %s leaves something", name)
		}
		if job := v.Job(merge.Job); job == nil || !job.Closed || job.State == model.Completed {
			t.Errorf("a merge that %s: its run is %+v", name, job)
		}
	}
	first := b.result(group, state.Enriched)
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 3})
	for name, end := range ends {
		merge := b.result(group, state.Enriched)
		b.must(merge)
		merge.NewGroup, merge.NewScraper = first.NewGroup, first.NewScraper
		b.must(end(merge))
		if b.view().Sibling(group, state.Enriched) == nil ||
			b.view().Scraper(first.NewScraper) == nil {
			t.Fatalf("a merge that %s takes what one before has made", name)
		}
	}
}

// A customer is told of results by their own events.
func TestResultsAreTold(t *testing.T) {
	for _, c := range []struct {
		made    state.Made
		message string
		event   model.Event
	}{
		{state.Enriched, "", model.MergeCompleted}, {state.Enriched, "none", model.RunFailed},
		{state.Matched, "", model.MatchCompleted}, {state.Matched, "none", model.MatchFailed},
	} {
		b := newBench(t)
		group, _ := b.members("g", 1)
		begin := b.result(group, c.made)
		b.must(begin)
		end := command.EndImportPayload{Job: begin.Job, Items: 2, Message: c.message}
		b.must(end)
		b.must(end)
		var told []*state.Notice
		b.view().Notices("a", func(n *state.Notice) bool { told = append(told, n); return true })
		if len(told) != 1 || told[0].Event != c.event || told[0].Subject != begin.Job ||
			told[0].Name != "g_"+string(c.made) {
			t.Errorf("%+v: %+v", c, told)
		}
	}
}

// Once a group has a matching setup, its uploads with data are protected for good. The setup's
// first column stands.
func TestProtection(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 1)
	filled, empty := b.upload(group, "filled"), b.upload(group, "empty")
	b.must(filled)
	b.must(command.EndImportPayload{Job: filled.Job, Items: 1})
	b.must(empty)
	file, none := filled.NewScraper.ID, empty.NewScraper.ID
	protects := func(scraper ids.ID) bool { return b.view().Protects(b.view().Scraper(scraper)) }
	if protects(file) {
		t.Error("it is protected without a setup")
	}
	columns := func(column string) command.ProtectGroupPayload {
		return command.ProtectGroupPayload{Group: group, Columns: []command.KeyColumn{
			{Scraper: file, Column: column}, {Scraper: none, Column: column},
			{Scraper: members[0], Column: column}, {Scraper: b.ids.New(), Column: column}}}
	}
	matched := b.result(group, state.Matched)
	b.must(matched)
	if !protects(file) || protects(none) || protects(members[0]) {
		t.Error("another one is protected")
	}
	b.must(columns("EAN"))
	b.must(columns("other"))
	b.must(command.EndImportPayload{Job: empty.Job, Items: 1})
	since := b.view().Group(group).Setup
	b.now += 1000
	b.must(command.ProtectGroupPayload{Group: group})
	b.must(command.ProtectGroupPayload{Group: b.ids.New()})
	if got := b.view().Scraper(file).Protection; got == nil || got.Matched != "EAN" ||
		!protects(none) || b.view().Scraper(none).Protection != nil ||
		b.view().Group(group).Setup != since {
		t.Errorf("%+v", got)
	}
	elsewhere, _ := b.members("other", 0)
	b.must(command.PutScraperPayload{ID: none, Customer: "a", Group: elsewhere,
		Spec: model.Scraper{Name: "empty", Type: model.File}})
	if !protects(none) {
		t.Error("in another group it is protected no more")
	}
	long := columns(strings.Repeat("x", command.MaxKeyColumn+1))
	b.refused(long, fault.InvalidRequest)
	many := command.ProtectGroupPayload{Group: group,
		Columns: make([]command.KeyColumn, command.MaxKeyColumns+1)}
	b.refused(many, fault.InvalidRequest)
}

// The first upload that needs a key column fixes it. An upload begun before the protection replaces
// no rows.
func TestKeyColumnIsFixed(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	first := b.upload(group, "file")
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 1})
	file := first.NewScraper.ID
	early, queued := b.next(file), command.FixKeyPayload{Column: "late"}
	early.Asked = "asked"
	b.must(early)
	queued.Job = early.Job
	b.must(queued) // nothing is protected
	b.must(command.ProtectGroupPayload{Group: group})
	b.must(command.EndImportPayload{Job: early.Job, Items: 1, Hides: []ids.ID{first.Job}})
	if job := b.view().Job(early.Job); job.State != model.Failed {
		t.Errorf("it has replaced rows: %+v", job)
	}
	b.must(queued) // it has ended
	b.refused(b.next(file), fault.KeyColumnRequired)
	long := b.next(file)
	long.Key = strings.Repeat("k", command.MaxKeyColumn+1)
	b.refused(long, fault.InvalidRequest)
	second := b.next(file)
	second.Key = "EAN"
	for range 2 {
		if begun := b.must(second).(command.BegunImport); begun.Key != "EAN" {
			t.Errorf("%+v", begun)
		}
	}
	if known := b.view().Import(second.Job); known.Key != "EAN" || !known.Heavy {
		t.Errorf("%+v", known)
	}
	b.must(command.FixKeyPayload{Job: second.Job, Column: "other"})
	b.must(command.EndImportPayload{Job: second.Job, Items: 2, Hides: []ids.ID{first.Job},
		Key: "EAN"})
	third := b.next(file)
	third.Key = "other"
	if begun := b.must(third).(command.BegunImport); begun.Key != "EAN" {
		t.Errorf("%+v", begun)
	}
	if got := b.view().Scraper(file).Protection; got.Key != "EAN" || got.Run != second.Job {
		t.Errorf("%+v", got)
	}
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteRun, Target: second.Job,
		Run: &command.DeletedRun{Group: group, Scraper: file}}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteRunPayload{Deletion: d, Token: "t"})
	b.must(command.EndImportPayload{Job: third.Job, Items: 3, Hides: []ids.ID{second.Job},
		Key: "EAN"})
	if job := b.view().Job(third.Job); job.State != model.Failed {
		t.Errorf("what was deleted is shown again: %+v", job)
	}
}

// An upload protected while it waits gets the scraper's key.
func TestKeyColumnOfWhatWaits(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	first := b.upload(group, "file")
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 1})
	waits := b.next(first.NewScraper.ID)
	b.must(waits)
	b.must(command.ProtectGroupPayload{Group: group})
	for _, column := range []string{"", "id", "other"} {
		b.must(command.FixKeyPayload{Job: waits.Job, Column: column})
		if column == "id" && !b.view().Import(waits.Job).Heavy {
			t.Error("one that is added to others is not heavy")
		}
	}
	b.must(command.FixKeyPayload{Job: b.ids.New(), Column: "id"})
	if known := b.view().Import(waits.Job); known.Key != "id" {
		t.Errorf("%+v", known)
	}
	end := command.EndImportPayload{Job: waits.Job, Items: 2, Hides: []ids.ID{first.Job}}
	b.must(end) // from an owner that replaced rows
	if job := b.view().Job(waits.Job); job.Ended() || b.view().Import(waits.Job).Ended != 0 {
		t.Errorf("rows that replace others are shown: %+v", job)
	}
	end.Key = "id"
	b.must(end)
	if job := b.view().Job(waits.Job); job.State != model.Completed {
		t.Errorf("%+v", job)
	}
}

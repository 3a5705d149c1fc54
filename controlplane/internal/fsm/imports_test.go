package fsm

import (
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// upload returns the command of a first file with a name.
func (b *bench) upload(group ids.ID, name string) command.BeginImportPayload {
	return command.BeginImportPayload{Job: b.ids.New(), Customer: "a", Format: "csv", Bytes: 7,
		NewScraper: &command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a",
			Group: group, Spec: model.Scraper{Name: name, Type: model.File}}}
}

// next returns the command of a further file.
func (b *bench) next(scraper ids.ID) command.BeginImportPayload {
	return command.BeginImportPayload{Job: b.ids.New(), Customer: "a", Scraper: scraper,
		Format: "csv", Bytes: 7}
}

// An upload begins once and ends once, in any order and repetition. It needs and books no money.
func TestUploadEndsOnce(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	begin := b.upload(group, "prices")
	end := command.EndImportPayload{Job: begin.Job, Items: 9}
	b.must(end) // before it begins
	b.must(command.AdvanceImportPayload{Job: begin.Job, Items: 4})
	for range 2 {
		begun := b.must(begin).(command.BegunImport)
		if begun.Job != begin.Job || begun.Scraper != begin.NewScraper.ID {
			t.Errorf("%+v", begun)
		}
	}
	if b.view().WorkItem(begin.Job) == nil || b.view().Job(begin.Job).State != model.Running ||
		len(b.view().OpenJobs()) != 0 {
		t.Error("nobody is going to import it, or somebody is going to fetch it")
	}
	if hidden := b.view().HiddenIn(group); !slices.Equal(hidden, []ids.ID{begin.Job}) {
		t.Errorf("hidden are %v", hidden)
	}
	for _, items := range []uint64{4, 2, 4} {
		b.must(command.AdvanceImportPayload{Job: begin.Job, Items: items})
		if job := b.view().Job(begin.Job); job.Items != 4 {
			t.Errorf("%d rows", job.Items)
		}
	}
	b.must(command.ForgetImportsPayload{Jobs: []ids.ID{begin.Job}})
	late := command.EndImportPayload{Job: begin.Job, Message: "late"}
	for _, p := range []command.Payload{end, late, command.AdvanceImportPayload{Job: begin.Job,
		Items: 99}, end, command.StopRunPayload{Customer: "a", Scraper: begin.NewScraper.ID},
		begin} {
		b.must(p)
		job := b.view().Job(begin.Job)
		if job.State != model.Completed || !job.Closed || job.Items != 9 || job.Message != "" {
			t.Errorf("after command %d: %+v", p.Declaration().Number, job)
		}
	}
	if b.view().Import(begin.Job) != nil || b.view().WorkItem(begin.Job) != nil ||
		len(b.view().HiddenIn(group)) != 0 {
		t.Error("something is left of it")
	}
	entries := 0
	b.view().Entries("a", func(*state.Entry) bool { entries++; return true })
	if entries != 1 { // the free grant
		t.Errorf("%d ledger entries", entries)
	}
}

// The command that shows a file's rows hides the rows that they replace. Runs beyond the bound wait
// for retention.
func TestUploadReplaces(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	first := b.upload(group, "prices")
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 1})
	second := b.next(first.NewScraper.ID)
	b.must(second)
	b.refused(b.next(first.NewScraper.ID), fault.AlreadyRunning)
	many := make([]ids.ID, command.MaxHidden+1)
	for i := range many {
		many[i] = b.ids.New()
	}
	many[0] = first.Job
	for range 2 {
		b.must(command.EndImportPayload{Job: second.Job, Items: 2, Hides: many})
		if hidden := b.view().HiddenIn(group); len(hidden) != command.MaxHidden ||
			hidden[0] != first.Job {
			t.Errorf("%d are hidden", len(hidden))
		}
	}
	for range 2 {
		b.must(command.ForgetImportsPayload{Jobs: []ids.ID{second.Job, b.ids.New()}})
		if b.view().Import(second.Job) != nil {
			t.Error("it is not forgotten")
		}
	}
}

// A moved scraper's file hides rows in the groups where the scraper was, too. If one of them was
// deleted with its rows meanwhile, a protected file would show them again, so it fails.
func TestUploadReplacesInOtherGroups(t *testing.T) {
	for name, c := range map[string]struct {
		protected bool
		deletes   string
		ends      model.JobState
	}{
		"unprotected":                         {false, "", model.Completed},
		"unprotected, rows deleted":           {false, command.WithData, model.Completed},
		"protected":                           {true, "", model.Completed},
		"protected, group deleted":            {true, "none", model.Completed},
		"protected, group deleted, with rows": {true, command.WithData, model.Failed},
	} {
		b := newBench(t)
		from, _ := b.members("from", 0)
		to, _ := b.members("to", 0)
		none, _ := b.members("none", 0)
		first := b.upload(from, "prices")
		b.must(first)
		b.must(command.EndImportPayload{Job: first.Job, Items: 1})
		second := b.next(first.NewScraper.ID)
		if c.protected {
			b.must(command.ProtectGroupPayload{Group: from})
			second.Key = "id"
		}
		b.must(command.PutScraperPayload{ID: first.NewScraper.ID, Customer: "a", Group: to,
			Spec: first.NewScraper.Spec})
		b.must(second)
		if c.deletes != "" {
			b.deleteGroup(from, strings.TrimPrefix(c.deletes, "none"))
		}
		b.must(command.EndImportPayload{Job: second.Job, Items: 2, Hides: []ids.ID{first.Job},
			Key: second.Key})
		if job := b.view().Job(second.Job); job.State != c.ends {
			t.Errorf("%s: %+v", name, job)
		}
		if c.ends == model.Failed {
			continue
		}
		hidden := b.view().HiddenIn(from)
		if !slices.Equal(hidden, []ids.ID{first.Job}) || len(b.view().HiddenIn(none)) > 0 {
			t.Errorf("%s: hidden are %v", name, hidden)
		}
		if group := b.view().Group(from); group != nil && group.RowsRemoved == 0 {
			t.Errorf("%s: cursors go on: %+v", name, group)
		}
		b.must(command.ForgetImportsPayload{Jobs: []ids.ID{second.Job}})
		if hidden := b.view().HiddenIn(from); len(hidden) > 0 {
			t.Errorf("%s: hidden are still %v", name, hidden)
		}
	}
}

// Nothing of a failed file is shown. Its run says why, and its customer is notified.
func TestUploadFails(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	first := b.upload(group, "prices")
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 1})
	second := b.next(first.NewScraper.ID)
	b.must(second)
	b.must(command.AdvanceImportPayload{Job: second.Job, Items: 5})
	b.must(command.EndImportPayload{Job: second.Job, Message: strings.Repeat("ö", 400)})
	job := b.view().Job(second.Job)
	if job.State != model.Failed || job.Items != 0 || len(job.Message) > 500 ||
		!strings.HasPrefix(job.Message, "öö") || job.Shows() || job.Unlisted() {
		t.Errorf("%+v", job)
	}
	if hidden := b.view().HiddenIn(group); !slices.Equal(hidden, []ids.ID{second.Job}) {
		t.Errorf("hidden are %v", hidden)
	}
	events := []model.Event{}
	b.view().Notices("a", func(n *state.Notice) bool {
		events = append(events, n.Event)
		return true
	})
	if !slices.Contains(events, model.RunFailed) {
		t.Errorf("notices are %v", events)
	}
	b.must(b.next(first.NewScraper.ID)) // the scraper is free
}

// Nothing of a stopped file is kept, in no history, and nobody is notified. The run before it is
// the last one again.
func TestUploadIsStopped(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	first := b.upload(group, "prices")
	b.must(first)
	b.must(command.EndImportPayload{Job: first.Job, Items: 1})
	scraper := first.NewScraper.ID
	notices := func() (n int) {
		b.view().Notices("a", func(*state.Notice) bool { n++; return true })
		return n
	}
	told := notices()
	for _, name := range []string{"scraper", "run"} {
		second := b.next(scraper)
		b.must(second)
		b.must(command.AdvanceImportPayload{Job: second.Job, Items: 5})
		stop := command.StopRunPayload{Customer: "a", Scraper: scraper}
		if name == "run" {
			stop = command.StopRunPayload{Customer: "a", Job: second.Job}
		}
		for range 2 {
			b.must(stop)
		}
		job := b.view().Job(second.Job)
		if job.State != model.Stopped || !job.Closed || job.Items != 0 || !job.Unlisted() ||
			job.Shows() || b.view().WorkItem(second.Job) != nil {
			t.Errorf("%s: %+v", name, job)
		}
		if last := b.view().Scraper(scraper).LastJob; last != first.Job {
			t.Errorf("%s: the last run is %v", name, last)
		}
		if hidden := b.view().HiddenIn(group); !slices.Equal(hidden, []ids.ID{second.Job}) {
			t.Errorf("%s: hidden are %v", name, hidden)
		}
		b.must(command.EndImportPayload{Job: second.Job, Items: 7}) // its importer reports late
		if b.view().Job(second.Job).State != model.Stopped {
			t.Errorf("%s: it goes on", name)
		}
		b.must(command.ForgetImportsPayload{Jobs: []ids.ID{second.Job}})
	}
	if now := notices(); now != told {
		t.Errorf("%d notices more", now-told)
	}
}

// Names of uploads are unique per group (decision 46), other names per customer.
func TestNamesOfUploads(t *testing.T) {
	b := newBench(t)
	one, _ := b.members("one", 0)
	two, _ := b.members("two", 0)
	b.must(b.upload(one, "prices"))
	b.refused(b.upload(one, "prices"), fault.NameTaken)
	b.must(b.upload(two, "prices"))
	product := func(group ids.ID, name string) command.PutScraperPayload {
		return command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a", Group: group,
			Spec: model.Scraper{Name: name, Type: model.SingleProduct}}
	}
	b.refused(product(one, "prices"), fault.NameTaken)
	three, _ := b.members("three", 0)
	other := product(three, "prices")
	b.must(other)
	b.refused(product(one, "prices"), fault.NameTaken)
	b.refused(b.upload(three, "prices"), fault.NameTaken)
	other.Create, other.Spec.Type = false, model.File
	b.refused(other, fault.TypeNotRunnable)
	upload := b.view().UploadByName("a", one, "prices")
	b.refused(command.PutScraperPayload{ID: upload.ID, Customer: "a", Group: one,
		Spec: model.Scraper{Name: "x", Type: model.SingleProduct}}, fault.TypeNotRunnable)
	b.refused(command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: "a",
		Scraper: upload.ID, List: b.ids.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain)}, fault.TypeNotRunnable)
}

// Uploads under way are bounded, exactly, per customer and in all.
func TestUploadsAreBounded(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	var first command.BeginImportPayload
	for n := range command.MaxOpenImports {
		p := b.upload(group, strings.Repeat("x", n+1))
		b.must(p)
		if n == 0 {
			first = p
		}
	}
	beyond := b.upload(group, "beyond")
	b.refused(beyond, fault.IngestCapacity)
	b.must(command.EndImportPayload{Job: first.Job, Message: "failed"})
	b.must(beyond)
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for tx.OpenImports() < command.MaxAllImports {
			tx.PutImport(&state.Import{Job: b.ids.New(), Customer: "b"})
		}
		for n := len(tx.Imports("c")); n < command.MaxImports; n++ {
			tx.PutImport(&state.Import{Job: b.ids.New(), Customer: "c", Ended: 1})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.must(command.EndImportPayload{Job: beyond.Job, Items: 1})
	last := b.next(beyond.NewScraper.ID)
	b.must(last)
	b.must(command.StopRunPayload{Customer: "a", Job: last.Job})
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.PutImport(&state.Import{Job: b.ids.New(), Customer: "b"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.refused(b.next(beyond.NewScraper.ID), fault.IngestCapacityGlobal)
	b.must(command.NoteSpacePayload{Short: "voter-1"})
	b.refused(b.next(beyond.NewScraper.ID), fault.OutOfSpace)
}

// Deleting a scraper, or removing a customer, stops its uploads.
func TestUploadsEndWithWhatTheyAreOf(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	begin := b.upload(group, "prices")
	b.must(begin)
	b.deleteGroup(group, "")
	if job := b.view().Job(begin.Job); job.State != model.Stopped || !job.Closed {
		t.Errorf("%+v", job)
	}
	b.must(command.EndImportPayload{Job: begin.Job, Items: 1})
	if job := b.view().Job(begin.Job); job.State != model.Stopped {
		t.Errorf("%+v", job)
	}
	b.must(command.ForgetImportsPayload{Jobs: []ids.ID{begin.Job}})
	b.refused(b.next(begin.NewScraper.ID), fault.ScraperNotFound)
	foreign := b.upload(group, "x")
	foreign.Customer, foreign.NewScraper.Customer = "b", "b"
	b.refused(foreign, fault.GroupNotFound)
}

// rested makes the background work of an upload come due after a pause that it asked for.
func (b *bench) rested(job ids.ID) {
	b.t.Helper()
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		rested := *tx.WorkItem(job)
		rested.Advanced = b.now
		tx.PutWork(&rested)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// An upload without progress for the operators' hold time gives way to another file. Until then it
// holds its scraper, even while it rests behind others.
func TestStuckUploadGivesWay(t *testing.T) {
	b := newBench(t)
	b.now = 1_000_000
	group, _ := b.members("g", 0)
	first := b.upload(group, "prices")
	b.must(first)
	const minute = 60_000
	b.now += 29 * minute
	b.must(command.AdvanceImportPayload{Job: first.Job, Items: 5})
	b.now += 30*minute - 1
	next := b.next(first.NewScraper.ID)
	b.refused(next, fault.AlreadyRunning)
	b.rested(first.Job)
	b.now += 30*minute - 1
	b.refused(next, fault.AlreadyRunning)
	b.now++
	b.must(next)
	if job := b.view().Job(first.Job); job.State != model.Failed || job.Items != 0 {
		t.Errorf("%+v", job)
	}
	b.must(command.EndImportPayload{Job: first.Job, Items: 5}) // a late report
	if job := b.view().Job(first.Job); job.State != model.Failed {
		t.Errorf("%+v", job)
	}
	b.must(command.PutSettingsPayload{Uploads: &state.UploadFigures{HoldMinutes: 1}})
	b.now += minute - 1
	third := b.next(first.NewScraper.ID)
	b.refused(third, fault.AlreadyRunning)
	b.now++
	b.must(third)
}

// Figures of uploads and limits of a customer are bounded, exactly.
func TestFiguresOfUploads(t *testing.T) {
	b := newBench(t)
	most := state.UploadFigures{Heavy: command.MaxHeavyImports, Seconds: command.MaxUploadSeconds,
		HoldMinutes: command.MaxHoldMinutes}
	b.must(command.PutSettingsPayload{Uploads: &most})
	for _, p := range []state.UploadFigures{{Heavy: command.MaxHeavyImports + 1},
		{Seconds: command.MaxUploadSeconds + 1}, {HoldMinutes: command.MaxHoldMinutes + 1}} {
		b.refused(command.PutSettingsPayload{Uploads: &p}, fault.InvalidRequest)
	}
	if got := b.view().Settings().Uploads; got != most {
		t.Errorf("%+v", got)
	}
	limits := command.PutUploadLimitsPayload{Customer: "a", Bytes: command.MaxUploadBytes, Sheet: 7}
	for range 2 {
		b.must(limits)
		if c := b.view().Customer("a"); c.UploadBytes != limits.Bytes || c.SheetBytes != 7 {
			t.Errorf("%+v", c)
		}
	}
	for _, p := range []command.PutUploadLimitsPayload{{Customer: "a", Bytes: -1},
		{Customer: "a", Sheet: command.MaxUploadBytes + 1}} {
		b.refused(p, fault.InvalidRequest)
	}
	b.refused(command.PutUploadLimitsPayload{Customer: "nobody"}, fault.NotFound)
	b.must(command.PutUploadLimitsPayload{Customer: "a"})
	if c := b.view().Customer("a"); c.UploadBytes != 0 || c.SheetBytes != 0 {
		t.Errorf("%+v", c)
	}
}

package fsm

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// harvestable makes a scraper of a customer.
func (b *bench) harvestable(customer string) ids.ID {
	b.t.Helper()
	group, scraper := b.ids.New(), b.ids.New()
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: customer,
		Name: group.String()})
	b.must(command.PutScraperPayload{Create: true, ID: scraper, Customer: customer, Group: group,
		Spec: model.Scraper{Name: scraper.String(), Type: model.SingleProduct}})
	return scraper
}

func (b *bench) ask(customer string, scraper ids.ID) command.AskHarvestPayload {
	return command.AskHarvestPayload{ID: b.ids.New(), Customer: customer, Scraper: scraper,
		URL: "https://a.test/", Cap: 10}
}

// A harvest is asked for once and ends once, in any order and repetition.
func TestHarvestEndsOnce(t *testing.T) {
	b := newBench(t)
	scraper := b.harvestable("a")
	ask := b.ask("a", scraper)
	end := command.EndHarvestPayload{ID: ask.ID, Count: 7}
	b.must(end) // before it is asked for: ignored
	for range 2 {
		if h := b.must(ask).(state.Harvest); h.State != state.HarvestRunning || h.Count != 0 {
			t.Errorf("%+v", h)
		}
	}
	if b.view().WorkItem(ask.ID) == nil {
		t.Error("nobody is going to read anything")
	}
	b.refused(b.ask("a", scraper), fault.HarvestRunning)
	for _, p := range []command.EndHarvestPayload{end, {ID: ask.ID, Count: 8},
		{ID: ask.ID, Code: "source_unreachable"}, end} {
		b.must(p)
		if h := b.view().Harvest(ask.ID); h.State != state.HarvestDone || h.Count != 7 ||
			h.EndedAt != b.now {
			t.Errorf("%+v", h)
		}
	}
	if h := b.must(ask).(state.Harvest); h.State != state.HarvestDone {
		t.Error("asked for again, it is read again")
	}
	next := b.ask("a", scraper)
	b.must(next)
	b.must(command.EndHarvestPayload{ID: next.ID, Code: "source_unreachable",
		Detail: strings.Repeat("x", 9_000)})
	if h := b.view().Harvest(next.ID); h.State != state.HarvestFailed || len(h.Detail) > 500 {
		t.Errorf("%+v", h)
	}
	if h := b.view().NewestHarvest(scraper); h == nil || h.ID != ask.ID {
		t.Errorf("what failed takes the place of what was found: %+v", h)
	}
}

// A failure frees the key of its call. Nothing else does.
func TestFailedHarvestFreesItsKey(t *testing.T) {
	for _, code := range []string{"", "source_unreachable"} {
		b := newBench(t)
		ask := b.ask("a", b.harvestable("a"))
		ask.Operation, ask.Key = "op", "key"
		call := &command.Call{Customer: "a", Operation: "op", Key: "key"}
		propose := func(p command.AskHarvestPayload) Result {
			data, err := b.m.EncodeBy(nil, b.ids.New(), b.now, p, call)
			if err != nil {
				t.Fatal(err)
			}
			b.index++
			return b.m.Apply(b.index, data)
		}
		if r := propose(ask); r.Err != nil || r.Replayed {
			t.Fatal(r)
		}
		b.must(command.EndHarvestPayload{ID: ask.ID, Code: code, Count: 1})
		again := ask
		again.ID = b.ids.New()
		r := propose(again)
		if r.Err != nil || r.Replayed != (code == "") ||
			(r.Value.(state.Harvest).ID == ask.ID) != (code == "") {
			t.Errorf("code %q: %+v", code, r)
		}
	}
}

// A customer's harvests are bounded, exactly.
func TestHarvestsAreBounded(t *testing.T) {
	b := newBench(t)
	scraper := b.harvestable("a")
	b.refused(b.ask("b", scraper), fault.ScraperNotFound)
	b.refused(b.ask("a", b.ids.New()), fault.ScraperNotFound)
	for _, spoil := range []func(p *command.AskHarvestPayload){
		func(p *command.AskHarvestPayload) { p.Cap = 0 },
		func(p *command.AskHarvestPayload) { p.Cap = command.MaxHarvestCap + 1 },
		func(p *command.AskHarvestPayload) { p.URL = "" },
		func(p *command.AskHarvestPayload) { p.URL = strings.Repeat("x", 8_193) },
		func(p *command.AskHarvestPayload) { p.Key = strings.Repeat("x", 1_025) },
	} {
		ask := b.ask("a", scraper)
		spoil(&ask)
		b.refused(ask, fault.InvalidRequest)
	}
	for len(b.view().HarvestsFor("a")) < command.MaxHarvests-command.MaxHarvestsOn {
		ask := b.ask("a", scraper)
		b.must(ask)
		b.must(command.EndHarvestPayload{ID: ask.ID, Count: 1})
	}
	for range command.MaxHarvestsOn {
		b.must(b.ask("a", b.harvestable("a")))
	}
	b.refused(b.ask("a", scraper), fault.LimitReached) // ten are under way, and all are kept
	forget := command.ForgetHarvestsPayload{}
	for _, h := range b.view().HarvestsFor("a")[:2] {
		forget.Harvests = append(forget.Harvests, h.ID)
	}
	b.must(forget)
	if h := b.view().Harvest(forget.Harvests[0]); h == nil || !h.Wiped {
		t.Errorf("its count is forgotten at once: %+v", h)
	}
	b.now += command.HarvestKept
	b.must(forget)
	b.must(forget)
	if n := len(b.view().HarvestsFor("a")); n != command.MaxHarvests-2 {
		t.Errorf("%d are remembered", n)
	}
	b.refused(b.ask("a", scraper), fault.LimitReached) // ten are under way
	b.must(command.NoteSpacePayload{Short: "row store"})
	b.refused(b.ask("b", b.harvestable("b")), fault.OutOfSpace)
}

// The wipe is at 02:00 UTC, to the millisecond. It decides which harvests are shown.
func TestWipeOfTheNight(t *testing.T) {
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for now, want := range map[string]string{
		"2026-03-01T01:59:59.999Z":  "2026-02-28T02:00:00Z",
		"2026-03-01T02:00:00Z":      "2026-03-01T02:00:00Z",
		"2026-03-01T00:30:00-05:00": "2026-03-01T02:00:00Z",
		"2026-03-01T03:00:00+02:00": "2026-02-28T02:00:00Z",
	} {
		if got := state.LastWipe(at(now)); !got.Equal(at(want)) {
			t.Errorf("%s: %s", now, got)
		}
	}
	b := newBench(t)
	b.now = at("2026-03-01T01:00:00Z").UnixMilli()
	scraper := b.harvestable("a")
	first, second := b.ask("a", scraper), b.ask("a", scraper)
	shows := func(id ids.ID, now string) bool {
		return b.view().Harvest(id).Shows(b.view(), at(now))
	}
	b.must(first)
	if !shows(first.ID, "2026-03-02T05:00:00Z") {
		t.Error("what is under way is not shown")
	}
	b.must(command.EndHarvestPayload{ID: first.ID, Count: 1})
	if !shows(first.ID, "2026-03-01T01:59:59.999Z") || shows(first.ID, "2026-03-01T02:00:00Z") {
		t.Error("it goes at another time")
	}
	b.must(second)
	if shows(first.ID, "2026-03-01T01:30:00Z") || !shows(second.ID, "2026-03-01T01:30:00Z") {
		t.Error("the older one is shown")
	}
	deletion := command.Deletion{Customer: "a", Operation: command.OpDeleteScraper,
		Target: scraper}
	b.must(command.PreviewDeletePayload{Deletion: deletion, Token: "t"})
	b.must(command.DeleteScraperPayload{Deletion: deletion, Token: "t"})
	if !b.view().Harvest(second.ID).Orphaned(b.view()) {
		t.Error("somebody reads what a deleted scraper found")
	}
	forget := command.ForgetHarvestsPayload{Harvests: []ids.ID{first.ID, second.ID}}
	b.must(forget)
	if left := b.view().HarvestsFor("a"); len(left) != 1 || left[0].ID != first.ID ||
		b.view().WorkItem(second.ID) != nil {
		t.Errorf("what is done answers repeated calls: %v", left)
	}
	b.now += command.HarvestKept
	b.must(forget)
	if n := len(b.view().HarvestsFor("a")); n != 0 {
		t.Errorf("%d are remembered", n)
	}
}

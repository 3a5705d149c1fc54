package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// A deleted scraper leaves only its runs in the state; all counts are as before it.
func TestDeletedScraperLeavesNothing(t *testing.T) {
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	put := func(name string) command.PutScraperPayload {
		p := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
			Spec: model.Scraper{Name: name, Type: model.SingleProduct,
				ItemsConfig: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}}
		d.must(p)
		return p
	}
	kept := put("kept")
	before := *d.m.Store().View().Customer(customer)
	gone := put("gone") // with the same recipe
	deletion := command.Deletion{Customer: customer, Operation: command.OpDeleteScraper,
		Target: gone.ID}
	d.must(command.PreviewDeletePayload{Deletion: deletion, Token: "t"})
	d.must(command.DeleteScraperPayload{Deletion: deletion, Token: "t"})
	v := d.m.Store().View()
	if v.Scraper(gone.ID) != nil || len(v.RunRecipes(gone.ID)) > 0 || v.Recipe(gone.ID, 1) != nil {
		t.Error("the scraper is there, or its recipe")
	}
	if after := *v.Customer(customer); after.ScraperBytes != before.ScraperBytes {
		t.Errorf("%d bytes of scrapers, %d before", after.ScraperBytes, before.ScraperBytes)
	}
	if members := v.Group(group).Scrapers; members != 1 {
		t.Errorf("%d members", members)
	}
	if v.Recipe(kept.ID, 1) == nil {
		t.Error("another scraper's recipe went, too")
	}
	var left []string
	v.Scrapers(customer, func(s *state.Scraper) bool {
		left = append(left, s.Spec.Name)
		return true
	})
	if len(left) != 1 || left[0] != "kept" {
		t.Errorf("scrapers %q", left)
	}
}

// Older voters do not know this preview, so there is none until the cluster is upgraded.
func TestScraperDeletesWaitForTheVersion(t *testing.T) {
	d := newDefiner(t, command.ScraperDeletesSince-1)
	customer, group := d.owner(1)
	p := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct}}
	d.must(p)
	data, err := d.m.Encode(d.id(), 9, command.PreviewDeletePayload{Token: "t",
		Deletion: command.Deletion{Customer: customer, Operation: command.OpDeleteScraper,
			Target: p.ID}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.index++
	if got := d.m.Apply(d.index, data); fault.CodeOf(got.Err) != fault.NotSupported {
		t.Errorf("%v", got.Err)
	}
}

// A retention is a setting outside the recipe: the revision and other settings stay.
func TestPutRetention(t *testing.T) {
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	p := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct,
			Config: &model.ScraperConfig{Tiers: []string{"plain"}}}}
	d.must(p)
	for _, count := range []int{3, 3, 0} {
		d.must(command.PutRetentionPayload{Customer: customer, Scraper: p.ID, Count: count})
		s := d.m.Store().View().Scraper(p.ID)
		if kept := s.Spec.Config.RetentionCount; (kept == nil) != (count == 0) ||
			kept != nil && *kept != count {
			t.Errorf("%v is kept, want %d", kept, count)
		}
		if s.Revision != 1 || len(s.Spec.Config.Tiers) != 1 ||
			d.m.Store().View().Recipe(p.ID, 1) == nil {
			t.Errorf("it changed more: %+v", s)
		}
	}
	for _, refused := range []struct {
		payload command.PutRetentionPayload
		code    fault.Code
	}{
		{command.PutRetentionPayload{Customer: customer, Scraper: d.id(), Count: 1},
			fault.ScraperNotFound},
		{command.PutRetentionPayload{Customer: "another", Scraper: p.ID, Count: 1},
			fault.ScraperNotFound},
		{command.PutRetentionPayload{Customer: customer, Scraper: p.ID, Count: -1},
			fault.InvalidRequest},
	} {
		data, err := d.m.Encode(d.id(), 9, refused.payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.index++
		if got := d.m.Apply(d.index, data); fault.CodeOf(got.Err) != refused.code {
			t.Errorf("%+v: %v", refused.payload, got.Err)
		}
	}
}

// Members that a request left out keep their values at apply time, not those its proposer saw.
func TestPutGroupLeavesMembers(t *testing.T) {
	d := newDefiner(t, command.Newest)
	customer, id := d.owner(1)
	now := command.PutGroupPayload{ID: id, Customer: customer, Name: "n", DataTable: "d",
		StartType: "NONE", ShouldMatchProducts: true, Retention: 3, Zone: "Europe/Paris",
		Quarantine: true, Alerts: &state.Alerts{On: []string{"ADDED"}, Key: []string{"sku"}}}
	d.must(now)
	want := *d.m.Store().View().Group(id)
	seen := command.PutGroupPayload{ID: id, Customer: customer, Name: "o", DataTable: "o",
		StartType: "MANUAL", Left: command.GroupAlertsKey<<1 - 1}
	d.must(seen)
	got := *d.m.Store().View().Group(id)
	got.UpdatedAt = want.UpdatedAt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a request that names nothing changes (-was +is):\n%s", diff)
	}
	seen.Left &^= command.GroupStartType | command.GroupAlertsOn
	d.must(seen)
	got = *d.m.Store().View().Group(id)
	got.UpdatedAt, want.StartType, want.Alerts = want.UpdatedAt, "MANUAL", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one that names two changes (-want +got):\n%s", diff)
	}
	// Two requests that are each valid do not make an invalid group.
	rows := command.PutGroupPayload{ID: id, Customer: customer, Retention: 1,
		Left: (command.GroupAlertsKey<<1 - 1) &^ command.GroupRetention}
	d.must(rows)
	told := command.PutGroupPayload{ID: id, Customer: customer, Retention: 3,
		Alerts: &state.Alerts{On: []string{"ADDED"}},
		Left:   (command.GroupAlertsKey<<1 - 1) &^ command.GroupAlertsOn}
	if err := d.apply(told).Err; fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("alerts of a group that keeps one run: %v", err)
	}
}

// The groups in which a scraper's rows are looked for are bounded. Beyond that it can only be moved
// back to one of them.
func TestMovesAreBounded(t *testing.T) {
	b := newBench(t)
	first, members := b.members("first", 1)
	scraper := *b.view().Scraper(members[0])
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		scraper.Past = &state.PastRuns{Shown: b.ids.New(), Queued: 1}
		tx.PutScraper(&scraper)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	move := func(to ids.ID) command.PutScraperPayload {
		return command.PutScraperPayload{ID: scraper.ID, Customer: "a", Group: to,
			Spec: scraper.Spec}
	}
	for n := range state.MaxPastGroups {
		group, _ := b.members(fmt.Sprint("group ", n), 0)
		b.must(move(group))
	}
	last, _ := b.members("last", 0)
	b.refused(move(last), fault.LimitReached)
	b.must(move(first))
	if groups := b.view().GroupsOf(b.view().Scraper(scraper.ID)); !slices.Contains(groups, first) ||
		len(groups) != state.MaxPastGroups+1 {
		t.Errorf("%d groups", len(groups))
	}
}

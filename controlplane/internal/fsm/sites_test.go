package fsm

import (
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// siteFor returns the command of a site of the customer a.
func (b *bench) siteFor(scraper ids.ID, links uint32) command.PutSitePayload {
	return command.PutSitePayload{ID: b.ids.New(), Customer: "a", Scraper: scraper, Name: "s",
		Version: b.ids.New(), Links: links}
}

// A scraper has one site, which keeps its id when its links are replaced. Repeats change nothing.
func TestSitesAreSavedByScraper(t *testing.T) {
	b := newBench(t)
	_, members := b.members("g", 2)
	first, second := b.siteFor(members[0], 3), b.siteFor(members[0], 4)
	saved := b.must(first).(state.Site)
	b.now = 2
	for range 2 {
		again := b.must(second).(state.Site)
		if again.ID != saved.ID || again.Version != second.Version || again.Links != 4 ||
			again.CreatedAt != 1 || again.UpdatedAt != 2 {
			t.Errorf("saved again: %+v", again)
		}
		b.now = 2
	}
	v := b.view()
	if v.SiteOfVersion(first.Version) != nil || v.SiteOfVersion(second.Version) == nil {
		t.Error("the version before is named still, or the new one is not")
	}
	named := b.siteFor(members[0], 5)
	named.ID, named.Named = saved.ID, true
	b.must(named)
	for name, wrong := range map[string]command.PutSitePayload{
		"another's id": {ID: saved.ID, Named: true, Customer: "a", Scraper: members[1],
			Version: b.ids.New()},
		"an id of none": {ID: b.ids.New(), Named: true, Customer: "a", Scraper: members[0],
			Version: b.ids.New()},
		"an id that is taken": {ID: saved.ID, Customer: "a", Scraper: members[1],
			Version: b.ids.New()},
	} {
		t.Run(name, func(*testing.T) { b.refused(wrong, fault.NotFound) })
	}
	foreign := b.siteFor(members[1], 1)
	foreign.Customer = "b"
	b.refused(foreign, fault.ScraperNotFound)
	b.refused(b.siteFor(b.ids.New(), 1), fault.ScraperNotFound)
}

// A customer's sites are bounded by number and by links, exactly. An existing site can be replaced.
func TestSitesAreBounded(t *testing.T) {
	b := newBench(t)
	_, members := b.members("g", command.MaxSites+1)
	b.refused(b.siteFor(members[0], command.MaxSiteLinks+1), fault.ListTooLarge)
	long := b.siteFor(members[0], 1)
	long.Name = strings.Repeat("x", maxSiteName+1)
	b.refused(long, fault.InvalidRequest)
	const full = command.MaxSiteLinksInTotal / command.MaxSiteLinks
	for _, scraper := range members[:full] {
		b.must(b.siteFor(scraper, command.MaxSiteLinks))
	}
	b.refused(b.siteFor(members[full], 1), fault.LimitReached)
	b.must(b.siteFor(members[0], command.MaxSiteLinks))
	b.must(b.siteFor(members[full], 0))
	for _, scraper := range members[full+1 : command.MaxSites] {
		b.must(b.siteFor(scraper, 0))
	}
	b.refused(b.siteFor(members[command.MaxSites], 0), fault.LimitReached)
	b.must(b.siteFor(members[1], 0))
}

// A site is deleted once by its owner, and with its scraper, the scraper's group or the customer.
func TestSitesAreDeleted(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 3)
	var saved []state.Site
	for _, scraper := range members {
		saved = append(saved, b.must(b.siteFor(scraper, 1)).(state.Site))
	}
	gone := command.DeleteSitePayload{ID: saved[0].ID, Customer: "b"}
	b.must(gone)
	if b.view().Site(saved[0].ID) == nil {
		t.Error("another customer has deleted it")
	}
	gone.Customer = "a"
	for range 2 {
		b.must(gone)
		if v := b.view(); v.Site(saved[0].ID) != nil || v.Scraper(members[0]) == nil {
			t.Error("the site is there, or its scraper is not")
		}
	}
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteScraper, Target: members[1]}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteScraperPayload{Deletion: d, Token: "t"})
	if b.view().SiteOf(members[1]) != nil {
		t.Error("the site has outlived its scraper")
	}
	b.deleteGroup(group, "")
	if left := b.view().Sites("a"); len(left) != 0 {
		t.Errorf("%d sites have outlived their group", len(left))
	}
}

// A preview counts the deleted sites and their links. One more site, or other links, void it.
func TestSitesAreInTheCascade(t *testing.T) {
	for operation, commit := range map[string]func(command.Deletion) command.Payload{
		command.OpDeleteScraper: func(d command.Deletion) command.Payload {
			return command.DeleteScraperPayload{Deletion: d, Token: "t"}
		},
		command.OpDeleteGroup: func(d command.Deletion) command.Payload {
			return command.DeleteGroupPayload{Deletion: d, Token: "t"}
		},
		command.OpRemoveCustomer: func(d command.Deletion) command.Payload {
			return command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"}
		},
	} {
		t.Run(operation, func(t *testing.T) {
			b := newBench(t)
			group, members := b.members("g", 2)
			d := command.Deletion{Customer: "a", Operation: operation, Target: members[1]}
			if operation != command.OpDeleteScraper {
				d.Target = group
			}
			preview := func() state.Cascade {
				shown := b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
				return shown.(state.Preview).Cascade
			}
			for links := range uint32(3) {
				shown := preview()
				if shown.Count("sites") != int(min(links, 1)) ||
					shown.Count("siteLinks") != int(links) {
					t.Errorf("the preview of %d links says %+v", links, shown.Counts)
				}
				b.must(b.siteFor(members[1], links+1))
				b.refused(commit(d), fault.CascadeDrift)
			}
			preview()
			b.must(commit(d))
		})
	}
}

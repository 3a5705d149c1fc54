package fsm

import (
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	maxDeletedGroups = 1_000 // of a customer, still being removed
	membersAtOnce    = 200   // scrapers that one command removes
)

// cascadeOfGroup returns what a group's deletion takes along: scrapers, open runs, categories,
// shares, sites, and rows if they go, too. If any of these changes after the preview, the preview
// no longer holds. The same is true if a scraper runs, or a site's links change.
func cascadeOfGroup(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	group := tx.Group(d.Target)
	if group == nil || group.Customer != d.Customer {
		return state.Cascade{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	h, scrapers, sites := xxh3.New(), 0, siteCounts{}
	note := func(id ids.ID) { _, _ = h.Write(id[:]) } // a hash never fails
	tx.GroupScrapers(group.ID, func(s *state.Scraper) bool {
		scrapers++
		note(s.ID)
		note(s.LastJob)
		if site := tx.SiteOf(s.ID); site != nil {
			note(site.Version)
			sites.add(site)
		}
		return true
	})
	open := openInGroup(tx, group)
	for _, sibling := range tx.Siblings(group.ID) { // they are deleted with the group
		note(sibling.ID)
		open = append(open, openInGroup(tx, sibling)...)
	}
	for _, job := range open {
		note(job.ID)
	}
	var categories, shares int
	for _, g := range append(tx.Siblings(group.ID), group) {
		for _, category := range tx.Categories(g.ID) {
			categories++
			note(category.ID)
		}
		for _, share := range tx.Shares(g.ID) {
			shares++
			note(g.ID)
			_, _ = h.WriteString(share.Email)
		}
	}
	cascade := state.Cascade{Name: group.Name, Type: "GROUP", Counts: []state.Count{
		{Name: "openRuns", N: len(open)}, {Name: "scrapers", N: scrapers},
		{Name: "categories", N: categories}, {Name: "shares", N: shares}},
		Digest: h.Sum64() ^ uint64(d.Rows)}
	cascade.Counts = append(cascade.Counts, sites.counts()...)
	if d.Query == command.WithData {
		cascade.Counts = append(cascade.Counts, state.Count{Name: "rows", N: int(d.Rows)})
	}
	return cascade, nil
}

// openInGroup lists the open runs that a group's deletion stops: those that store rows in it, and
// those of its scrapers.
func openInGroup(tx *state.Tx, group *state.Group) []*state.Job {
	var open []*state.Job
	for _, job := range tx.OpenJobsOfCustomer(group.Customer) {
		scraper := tx.Scraper(job.Scraper)
		if job.Group == group.ID || scraper != nil && scraper.Group == group.ID {
			open = append(open, job)
		}
	}
	return open
}

func deleteGroup(tx *state.Tx, p command.DeleteGroupPayload) (command.None, error) {
	siblings := tx.Siblings(p.Deletion.Target)
	if len(tx.DeletedGroupsOf(p.Deletion.Customer))+len(siblings) >= maxDeletedGroups {
		return command.None{}, fault.New(fault.LimitReached,
			"%d deleted groups are being removed; come again later", maxDeletedGroups)
	}
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	dropGroup(tx, tx.Group(p.Deletion.Target), p.Deletion.Query == command.WithData)
	for _, sibling := range siblings {
		dropGroup(tx, sibling, p.Deletion.Query == command.WithData)
	}
	return command.None{}, nil
}

// dropGroup removes a group, and its rows if rows is set.
func dropGroup(tx *state.Tx, group *state.Group, rows bool) {
	for _, job := range openInGroup(tx, group) {
		if !job.State.Final() {
			endRun(tx, job, model.StoppedByCustomer)
		}
	}
	tx.RemoveGroup(group)
	removeCategories(tx, group.ID)
	removeShares(tx, group.ID)
	deleted := &state.DeletedGroup{Group: group.ID, Customer: group.Customer,
		Rows: rows, At: tx.Now}
	tx.PutDeletedGroup(deleted)
	if left := removeMembers(tx, group.ID); !left && !deleted.Rows {
		tx.RemoveDeletedGroup(deleted)
	}
}

// removeMembers removes some scrapers of a deleted group. It reports whether others are left.
func removeMembers(tx *state.Tx, group ids.ID) (left bool) {
	var members []*state.Scraper
	tx.GroupScrapers(group, func(s *state.Scraper) bool {
		if left = len(members) == membersAtOnce; !left {
			members = append(members, s)
		}
		return !left
	})
	for _, scraper := range members {
		removeScraper(tx, scraper)
	}
	return left
}

// freeName frees a scraper name that a member of a deleted group still has, by removing the member.
func freeName(tx *state.Tx, customer, name string) {
	if member := tx.MemberByName(customer, name); member != nil &&
		tx.DeletedGroup(member.Group) != nil {
		removeScraper(tx, member)
	}
}

func deleteMembers(tx *state.Tx, p command.DeleteMembersPayload) (command.None, error) {
	if tx.DeletedGroup(p.Group) != nil {
		removeMembers(tx, p.Group)
	}
	return command.None{}, nil
}

func forgetGroup(tx *state.Tx, p command.ForgetGroupPayload) (command.None, error) {
	deleted, left := tx.DeletedGroup(p.Group), false
	tx.GroupScrapers(p.Group, func(*state.Scraper) bool { left = true; return false })
	if deleted != nil && !left {
		tx.RemoveDeletedGroup(deleted)
	}
	return command.None{}, nil
}

package fsm

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// members makes a group of the customer a with scrapers of one recipe and numbered names.
func (b *bench) members(name string, count int) (group ids.ID, members []ids.ID) {
	b.t.Helper()
	group = b.ids.New()
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: "a", Name: name})
	for n := range count {
		members = append(members, b.member(group, fmt.Sprintf("%s %d", name, n)))
	}
	return group, members
}

func (b *bench) member(group ids.ID, name string) ids.ID {
	b.t.Helper()
	return b.must(command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a",
		Group: group, Spec: model.Scraper{Name: name, Type: model.SingleProduct,
			ItemsConfig: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}},
	}).(state.Scraper).ID
}

// A group's siblings are deleted with it, so the preview counts what they have.
func TestSiblingsAreCounted(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	result := b.result(group, state.Enriched)
	b.must(result)
	b.must(command.EndImportPayload{Job: result.Job, Items: 1})
	b.must(b.category(result.NewGroup, "cheap", `{"a":1}`))
	b.must(shareWith(result.NewGroup, "b@x.test"))
	b.must(shareWith(group, "b@x.test"))
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group}
	for _, more := range []command.Payload{b.category(result.NewGroup, "dear", `{"a":2}`),
		shareWith(result.NewGroup, "c@x.test")} {
		b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
		b.must(more)
		b.refused(command.DeleteGroupPayload{Deletion: d, Token: "t"}, fault.CascadeDrift)
	}
	preview := b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"}).(state.Preview)
	counts := map[string]int{}
	for _, count := range preview.Cascade.Counts {
		counts[count.Name] = count.N
	}
	if counts["categories"] != 2 || counts["shares"] != 3 {
		t.Errorf("%v", counts)
	}
}

func (b *bench) deleteGroup(group ids.ID, query string) {
	b.t.Helper()
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group,
		Query: query}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteGroupPayload{Deletion: d, Token: "t"})
}

// left counts the scrapers of a group that still have a record.
func (b *bench) left(group ids.ID) (count int) {
	b.view().GroupScrapers(group, func(*state.Scraper) bool { count++; return true })
	return count
}

// One command hides a large group, and its scrapers are removed in parts. Repeated or early
// commands change nothing. In the end everything is as before the group.
func TestGroupIsDeletedInParts(t *testing.T) {
	b := newBench(t)
	kept, keptMembers := b.members("kept", 1)
	before := *b.view().Customer("a")
	group, members := b.members("gone", 2*membersAtOnce+1)
	launched, err := b.launch(members[0])
	if err != nil {
		t.Fatal(err)
	}
	b.must(command.DeleteMembersPayload{Group: group}) // not a deleted group
	b.must(command.ForgetGroupPayload{Group: group})
	b.deleteGroup(group, "")
	v := b.view()
	for _, member := range members {
		if v.Scraper(member) != nil {
			t.Fatal("a scraper of the group is there")
		}
	}
	v.Scrapers("a", func(s *state.Scraper) bool {
		if s.ID != keptMembers[0] {
			t.Errorf("scraper %q is listed", s.Spec.Name)
		}
		return true
	})
	job := v.Job(launched.Job)
	if v.Group(group) != nil || !job.State.Final() ||
		v.Recipe(job.Scraper, job.Revision) == nil {
		t.Errorf("the group is there, or its run %+v goes on, or cannot drain", job)
	}
	if left := b.left(group); left != membersAtOnce+1 {
		t.Fatalf("%d scrapers are left by the first command", left)
	}
	b.must(command.ForgetGroupPayload{Group: group}) // too early
	// The name of a scraper that is still to be removed is free for a new one.
	const name = "gone 0"
	if b.view().MemberByName("a", name) == nil || b.view().ScraperByName("a", name) != nil {
		t.Fatal("the oldest scraper is to go last, and not to be found")
	}
	again := b.member(kept, name)
	for want := membersAtOnce; want >= 0; want -= membersAtOnce {
		if left := b.left(group); left != want {
			t.Fatalf("%d scrapers are left, want %d", left, want)
		}
		b.must(command.DeleteMembersPayload{Group: group})
	}
	for range 2 {
		b.must(command.ForgetGroupPayload{Group: group})
		b.must(command.DeleteMembersPayload{Group: group})
	}
	v = b.view()
	if v.DeletedGroup(group) != nil || v.ScraperByName("a", name) == nil ||
		v.ScraperByName("a", name).ID != again || v.Group(kept).Scrapers != 2 {
		t.Error("something is left of the group, or gone of another")
	}
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteScraper, Target: again}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.DeleteScraperPayload{Deletion: d, Token: "t"})
	if after := *b.view().Customer("a"); after.ScraperBytes != before.ScraperBytes {
		t.Errorf("%d bytes of scrapers, %d before", after.ScraperBytes, before.ScraperBytes)
	}
}

// A small group whose rows stay is removed at once. One whose rows go, too, keeps a mark until
// then.
func TestSmallGroupsGoAtOnce(t *testing.T) {
	b := newBench(t)
	for _, query := range []string{"", command.WithData} {
		group, _ := b.members("g", membersAtOnce)
		b.deleteGroup(group, query)
		deleted := b.view().DeletedGroup(group)
		if (deleted != nil) != (query != "") || deleted != nil && !deleted.Rows ||
			b.left(group) > 0 {
			t.Errorf("with %q %+v is noted", query, deleted)
		}
	}
}

// A customer's deletions under way are bounded.
func TestDeletedGroupsAreBounded(t *testing.T) {
	b := newBench(t)
	for range maxDeletedGroups {
		group, _ := b.members("g", 0)
		b.deleteGroup(group, command.WithData)
	}
	group, _ := b.members("g", 0)
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.refused(command.DeleteGroupPayload{Deletion: d, Token: "t"}, "limit_reached")
	b.must(command.ForgetGroupPayload{Group: b.view().DeletedGroupsOf("a")[0].Group})
	b.must(command.DeleteGroupPayload{Deletion: d, Token: "t"})
}

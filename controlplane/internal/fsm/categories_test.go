package fsm

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// category makes a category of the customer a.
func (b *bench) category(group ids.ID, name, filters string) command.PutCategoryPayload {
	return command.PutCategoryPayload{ID: b.ids.New(), Customer: "a", Group: group, Name: name,
		Filters: []byte(filters)}
}

// A name has one category per group, which keeps its id. Repeats change nothing.
func TestCategoriesAreSavedByName(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	other, _ := b.members("other", 0)
	first, second := b.category(group, "cheap", `{"p":1}`), b.category(group, "cheap", `{"p":2}`)
	saved := b.must(first).(state.Category)
	b.now = 2
	for range 2 {
		again := b.must(second).(state.Category)
		if again.ID != saved.ID || string(again.Filters) != `{"p":2}` || again.CreatedAt != 1 ||
			again.UpdatedAt != 2 {
			t.Errorf("saved again: %+v", again)
		}
	}
	if b.must(b.category(other, "cheap", `{}`)).(state.Category).ID == saved.ID {
		t.Error("another group's has its id")
	}
	foreign := first
	foreign.Customer = "b"
	b.refused(foreign, fault.NotFound)
	first.Group = b.ids.New()
	b.refused(first, fault.NotFound)
	v := b.view()
	if len(v.Categories(group)) != 1 || v.CategoriesOf("a") != 2 ||
		v.Category(other, saved.ID) != nil || v.Category(group, saved.ID) == nil {
		t.Error("categories are listed wrongly")
	}
}

// TestCategoriesAreBounded per group and per customer. An existing one can be saved again.
func TestCategoriesAreBounded(t *testing.T) {
	b := newBench(t)
	for g := range maxCategoriesInTotal / maxCategories {
		group, _ := b.members(fmt.Sprint("g", g), 0)
		for n := range maxCategories {
			b.must(b.category(group, fmt.Sprint("c", n), `{}`))
		}
		b.refused(b.category(group, "more", `{}`), fault.LimitReached)
		b.must(b.category(group, "c0", `{"a":1}`))
	}
	group, _ := b.members("empty", 0)
	b.refused(b.category(group, "more", `{}`), fault.LimitReached)
}

func deletionOfCategory(group, category ids.ID) command.Deletion {
	return command.Deletion{Customer: "a", Operation: command.OpDeleteCategory, Target: category,
		Query: group.String()}
}

// Deleting a category needs its preview, once, unless its filter changes after it.
func TestCategoryIsDeleted(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	other, _ := b.members("other", 0)
	saved := b.must(b.category(group, "cheap", `{"p":1}`)).(state.Category)
	kept := b.must(b.category(group, "kept", `{"p":1}`)).(state.Category)
	d := deletionOfCategory(group, saved.ID)
	b.refused(command.DeleteCategoryPayload{Deletion: d}, fault.PreviewRequired)
	foreign := d
	foreign.Customer = "b"
	for _, wrong := range []command.Deletion{foreign, deletionOfCategory(other, saved.ID),
		deletionOfCategory(group, b.ids.New()),
		{Customer: "a", Operation: d.Operation, Target: saved.ID, Query: "x"}} {
		b.refused(command.PreviewDeletePayload{Deletion: wrong, Token: "w"}, fault.NotFound)
		b.refused(command.DeleteCategoryPayload{Deletion: wrong}, fault.NotFound)
	}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(b.category(group, "cheap", `{"p":2}`))
	b.refused(command.DeleteCategoryPayload{Deletion: d, Token: "t"}, fault.CascadeDrift)
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "u"})
	b.must(command.DeleteCategoryPayload{Deletion: d, Token: "u"})
	b.refused(command.DeleteCategoryPayload{Deletion: d, Token: "u"}, fault.NotFound)
	left := b.view().Categories(group)
	if len(left) != 1 || left[0].ID != kept.ID {
		t.Errorf("%d categories are left", len(left))
	}
}

// Categories are deleted with their group. The preview counts them, and one more voids it.
func TestCategoriesGoWithTheirGroup(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	kept, _ := b.members("kept", 0)
	b.must(b.category(kept, "cheap", `{}`))
	b.must(b.category(group, "cheap", `{}`))
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group}
	shown := b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"}).(state.Preview)
	if got := shown.Cascade.Count("categories"); got != 1 {
		t.Errorf("the preview says %+v", got)
	}
	b.must(b.category(group, "more", `{}`))
	b.refused(command.DeleteGroupPayload{Deletion: d, Token: "t"}, fault.CascadeDrift)
	b.deleteGroup(group, "")
	if v := b.view(); len(v.Categories(group)) != 0 || v.CategoriesOf("a") != 1 {
		t.Errorf("%d categories are left of the group", len(v.Categories(group)))
	}
}

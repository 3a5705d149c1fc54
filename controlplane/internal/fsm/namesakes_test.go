package fsm

import (
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// A customer's groups may share a name (decision 46) once all nodes allow it. Until then a second
// one is refused, as older nodes do.
func TestGroupsShareAName(t *testing.T) {
	b := &bench{t: t, m: New(), now: 1}
	b.must(command.CreateClusterPayload{Version: 1, ID: b.ids.New(), Shards: 1, FreeGrant: 5,
		Prices: testPrices})
	for _, ref := range []string{"a", "b"} {
		b.must(command.OpenCustomerPayload{Customer: ref, Entry: b.ids.New()})
	}
	put := func(customer, name string) command.PutGroupPayload {
		return command.PutGroupPayload{Create: true, ID: b.ids.New(), Customer: customer,
			Name: name, DataTable: "t", StartType: "MANUAL"}
	}
	first, second, renamed := put("a", "g"), put("a", "g"), put("a", "h")
	b.must(first)
	b.must(renamed)
	b.must(put("b", "g")) // names are per customer
	b.refused(second, fault.NameTaken)
	renamed.Create, renamed.Name = false, "g"
	b.refused(renamed, fault.NameTaken)
	renamed.Name = "h"
	b.must(renamed) // its own name is not taken

	b.must(command.ActivateVersionPayload{Version: state.NamesakesSince})
	b.must(second)
	renamed.Name = "g"
	b.must(renamed)
	restored := New()
	if err := restored.Restore(strings.NewReader(written(t, b.m.Snapshot()))); err != nil {
		t.Fatal(err)
	}
	wanted := map[ids.ID]bool{first.ID: true, second.ID: true, renamed.ID: true}
	for when, view := range map[string]*state.View{"applied": b.view(),
		"restored": restored.Store().View()} {
		groups := view.Groups("a")
		for _, g := range groups {
			if g.Name != "g" || !wanted[g.ID] {
				t.Errorf("%s: %+v", when, g)
			}
		}
		if len(groups) != len(wanted) {
			t.Errorf("%s: %d groups, want %d", when, len(groups), len(wanted))
		}
	}
	// A group keeps its own sibling, whatever other groups are called.
	of := b.result(second.ID, state.Enriched)
	b.must(of)
	b.must(b.result(first.ID, state.Enriched))
	second.Create, second.Name = false, "other"
	b.must(second)
	for group, want := range map[ids.ID]string{first.ID: "g_enriched",
		second.ID: "other_enriched"} {
		if sibling := b.view().Sibling(group, state.Enriched); sibling.Name != want {
			t.Errorf("the sibling of %s is %q, want %q", group, sibling.Name, want)
		}
	}
}

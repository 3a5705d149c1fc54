package fsm

import (
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// catalogues checks the catalogue in each state; zero: none.
func (b *bench) catalogues(reading, ready, failed ids.ID) {
	b.t.Helper()
	for in, want := range map[state.CatalogueState]ids.ID{state.CatalogueReading: reading,
		state.CatalogueReady: ready, state.CatalogueFailed: failed} {
		got := ids.ID{}
		if c := b.view().CatalogueIn(in); c != nil {
			got = c.ID
		}
		if got != want {
			b.t.Errorf("%s is %s, want %s", in, got, want)
		}
		if item := b.view().WorkItem(want); !want.IsZero() &&
			(item != nil) != (in == state.CatalogueReading) {
			b.t.Errorf("the work of the one that is %s: %v", in, item)
		}
	}
}

// A catalogue stays until a newer one is valid, in any order and repetition of commands.
func TestCatalogueStandsUntilTheNextIsWhole(t *testing.T) {
	b := newBench(t)
	begin := func() command.BeginCataloguePayload {
		return command.BeginCataloguePayload{ID: b.ids.New(), Format: "csv", Bytes: 7, By: "ada"}
	}
	none, first, second, third, fourth := ids.ID{}, begin(), begin(), begin(), begin()
	b.must(command.EndCataloguePayload{ID: first.ID, Products: 3}) // before it begins
	for range 2 {
		b.must(first)
		b.catalogues(first.ID, none, none)
	}
	for range 2 {
		b.must(command.EndCataloguePayload{ID: first.ID, Products: 3})
		b.must(command.EndCataloguePayload{ID: first.ID, Message: "late"})
		b.must(first)
		b.catalogues(none, first.ID, none)
	}
	if c := b.view().Catalogue(first.ID); c.Products != 3 || c.Ended == 0 || c.By != "ada" {
		t.Errorf("%+v", c)
	}
	b.must(second)
	b.catalogues(second.ID, first.ID, none)
	b.must(third) // this gives the second one up
	b.catalogues(third.ID, first.ID, none)
	b.must(command.EndCataloguePayload{ID: second.ID, Products: 9})
	b.catalogues(third.ID, first.ID, none)
	b.must(command.EndCataloguePayload{ID: third.ID, Message: strings.Repeat("ö", 900)})
	b.catalogues(none, first.ID, third.ID)
	b.must(command.EndCataloguePayload{ID: third.ID, Products: 9})
	b.catalogues(none, first.ID, third.ID)
	b.must(fourth)
	b.must(command.EndCataloguePayload{ID: fourth.ID, Products: 1})
	b.catalogues(none, fourth.ID, none)
	b.refused(command.BeginCataloguePayload{Format: "csv"}, fault.InvalidRequest)
	b.refused(command.BeginCataloguePayload{ID: b.ids.New(), Format: strings.Repeat("x", 17)},
		fault.InvalidRequest)
	b.refused(command.BeginCataloguePayload{ID: b.ids.New(), Bytes: -1}, fault.InvalidRequest)
}

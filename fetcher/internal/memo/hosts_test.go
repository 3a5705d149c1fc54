package memo

import (
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
)

func TestHosts(t *testing.T) {
	m := NewHosts(2)
	now := time.Unix(0, 0)
	tiers := []model.Tier{model.Plain, model.Render, model.Super}
	first := func(host string, want int) {
		t.Helper()
		if got := m.First(host, tiers, now); got != want {
			t.Errorf("%s begins at %d, want %d", host, got, want)
		}
	}
	first("a", 0)
	m.Note("a", model.TiersOf(model.Plain), now)
	first("a", 1)
	m.Note("a", model.TiersOf(model.Render), now)
	first("a", 2)
	first("b", 0)
	if got := m.First("a", []model.Tier{model.Plain, model.Render}, now); got != 0 {
		t.Errorf("without a tier that works, begins at %d", got)
	}
	now = now.Add(RememberFor)
	first("a", 0)
	m.Note("a", model.TiersOf(model.Plain), now)
	m.Note("b", model.TiersOf(model.Plain), now)
	m.Note("c", model.TiersOf(model.Plain), now)
	first("a", 0)
	first("c", 1)
	m.Forget("c")
	first("c", 0)
	if m.notes.Len() != 1 {
		t.Errorf("%d notes", m.notes.Len())
	}
}

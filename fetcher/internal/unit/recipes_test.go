package unit

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/reading"
)

// known is a state with one revision of every recipe.
type known struct {
	View
	revision uint32
}

func (k known) Recipe(_ ids.ID, revision uint32) *client.Recipe {
	if revision != k.revision {
		return nil
	}
	return &client.Recipe{Recipe: title()}
}

func TestRecipesAreBounded(t *testing.T) {
	of := known{revision: 1}
	cache := newRecipeCache(2, reading.New("fetcher", reading.Config{}), (&Config{}).paceFor)
	first := cache.get(of, ids.ID{1}, 1)
	if first == nil || first.extractor == nil || cache.get(of, ids.ID{1}, 1) != first {
		t.Fatal("a recipe is not compiled once")
	}
	cache.get(of, ids.ID{2}, 1)
	cache.get(of, ids.ID{1}, 1)
	cache.get(of, ids.ID{3}, 1)
	if cache.get(of, ids.ID{1}, 1) != first {
		t.Error("the recipe used last is gone")
	}
	if cache.known.Len() != 2 {
		t.Errorf("%d recipes are kept", cache.known.Len())
	}
	if cache.get(of, ids.ID{4}, 9) != nil {
		t.Error("an unknown revision has a recipe")
	}
}

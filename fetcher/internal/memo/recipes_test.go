package memo

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// known is a view with one revision of every recipe.
type known uint32

func (k known) Recipe(_ ids.ID, revision uint32) *client.Recipe {
	if revision != uint32(k) {
		return nil
	}
	return &client.Recipe{Recipe: model.Recipe{Type: model.SingleProduct}}
}

func TestRecipesAreBounded(t *testing.T) {
	size := 1
	recipes := NewRecipes(2, func(r model.Recipe) (*model.Recipe, int) { return &r, size })
	get := func(scraper byte) *model.Recipe {
		return recipes.Find(known(1), ids.ID{scraper}, 1).Compile()
	}
	first := get(1)
	if first == nil || first.Type != model.SingleProduct || get(1) != first {
		t.Fatal("a recipe is not compiled once")
	}
	get(2)
	get(1)
	get(3)
	if get(1) != first {
		t.Error("the recipe used last is gone")
	}
	if recipes.known.Len() != 2 || recipes.known.Size() != 2 {
		t.Errorf("%d recipes of the size %d are kept", recipes.known.Len(), recipes.known.Size())
	}
	if recipes.Find(known(1), ids.ID{4}, 9) != nil {
		t.Error("an unknown revision has a recipe")
	}
	size = MaxRecipeSize // leaves no room for another
	if get(5); recipes.known.Len() != 1 || recipes.known.Size() != size {
		t.Errorf("%d recipes of the size %d are kept", recipes.known.Len(), recipes.known.Size())
	}
}

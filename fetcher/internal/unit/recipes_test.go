package unit

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules"
	"shoal.dev/shoal/pkg/turns"
)

// known is a state with one revision of every recipe.
type known struct {
	View
	revision uint32
	recipe   model.Recipe // title unless told
}

func (k known) Recipe(_ ids.ID, revision uint32) *client.Recipe {
	if revision != k.revision {
		return nil
	}
	if k.recipe.Type == "" {
		return &client.Recipe{Recipe: title()}
	}
	return &client.Recipe{Recipe: k.recipe}
}

func TestRecipesAreBounded(t *testing.T) {
	of := known{revision: 1}
	cache := newRecipeCache(2, reading.New("fetcher", reading.Config{}), (&Config{}).paceFor)
	get := func(view View, scraper ids.ID, revision uint32) *recipe {
		if kept := cache.find(view, scraper, revision); kept != nil {
			return kept.compile()
		}
		return nil
	}
	first := get(of, ids.ID{1}, 1)
	if first == nil || first.extractor == nil || get(of, ids.ID{1}, 1) != first {
		t.Fatal("a recipe is not compiled once")
	}
	get(of, ids.ID{2}, 1)
	get(of, ids.ID{1}, 1)
	get(of, ids.ID{3}, 1)
	if get(of, ids.ID{1}, 1) != first {
		t.Error("the recipe used last is gone")
	}
	if cache.known.Len() != 2 {
		t.Errorf("%d recipes are kept", cache.known.Len())
	}
	if get(of, ids.ID{4}, 9) != nil {
		t.Error("an unknown revision has a recipe")
	}
}

// large is a recipe with as many patterns as one may have, nearly, in its selectors and its rules.
func large() model.Recipe {
	const pattern = "a{0,900}a{0,900}a{0,900}"
	r := model.Recipe{Type: model.SingleProduct}
	for n := range 8 {
		r.Fields = append(r.Fields, model.Field{Name: fmt.Sprint(n), Kind: model.Text,
			Selector: "p:matches(" + pattern + ")"})
		r.Rules = append(r.Rules, model.PostProcessRule{Kind: string(rules.RegexClean),
			SourceField: "0", OutputField: fmt.Sprint("o", n),
			Params: map[string]any{"pattern": pattern, "replacement": "b", "onNoMatch": "NULL"}})
	}
	return r
}

// However large recipes are and whoever has them, those that are kept have a bound together.
func TestMemoryOfRecipes(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	of := known{revision: 1, recipe: large()}
	cache := newRecipeCache(maxRecipes, reading.New("fetcher", reading.Config{}),
		(&Config{}).paceFor)
	before := heap()
	for n := range byte(60) {
		kept := cache.find(of, ids.ID{n}, 1)
		if made := kept.compile(); made.err != nil {
			t.Fatal(made.err)
		} else if made.size < 100_000 || made.size > maxRecipeSize/5 {
			t.Fatalf("one has the size %d", made.size)
		}
		if cache.find(of, ids.ID{n}, 1) != kept {
			t.Fatal("the newest is not kept")
		}
	}
	if held := int64(heap()-before) >> 20; held > 200 || cache.known.Size() > maxRecipeSize {
		t.Errorf("%d recipes of the size %d take %d MB", cache.known.Len(), cache.known.Size(),
			held)
	}
}

// A recipe is compiled where pages are read, at its customer's turn: no task that comes waits for
// it.
func TestRecipesAreCompiledInAPlace(t *testing.T) {
	of := known{revision: 1}
	units := New(Config{View: func() View { return of }, Extractions: 1, Clock: clock.System{},
		Reader: reading.New("fetcher", reading.Config{})})
	task := &model.Task{URL: "http://a.test/", Scraper: ids.ID{1}, Revision: 1, Customer: "c"}
	chain, _, _ := units.BeginChain(task)
	kept := units.recipes.find(of, task.Scraper, task.Revision)
	var place turns.Place
	units.extracting.Enter(t.Context(), "other", &place)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	turn := &Turn{Chain: chain, view: of}
	if turn.findRecipe(ctx) || kept.compiled() != nil {
		t.Error("a recipe is compiled without a place")
	}
	place.Leave()
	if !turn.findRecipe(t.Context()) || turn.recipe == nil || turn.recipe != kept.compiled() {
		t.Errorf("in a place it is %v", turn.recipe)
	}
	units.extracting.Enter(t.Context(), "other", &place)
	defer place.Leave()
	if !turn.findRecipe(t.Context()) {
		t.Error("one that is compiled needs a place")
	}
}

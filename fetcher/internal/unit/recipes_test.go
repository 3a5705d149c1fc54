package unit

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/memo"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules"
	"shoal.dev/shoal/pkg/turns"
)

// known is a view with one revision of every recipe.
type known struct {
	View
	revision uint32
	recipe   model.Recipe // title by default
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

// large returns a recipe with nearly the most patterns allowed, in its selectors and rules.
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

// The cached recipes are bounded in total, however large they are and whoever owns them.
func TestMemoryOfRecipes(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	of := known{revision: 1, recipe: large()}
	recipes := New(Config{Reader: reading.New("fetcher", reading.Config{})}).recipes
	before := heap()
	for n := range byte(60) {
		kept := recipes.Find(of, ids.ID{n}, 1)
		if made := kept.Compile(); made.err != nil {
			t.Fatal(made.err)
		} else if made.size < 100_000 || made.size > memo.MaxRecipeSize/5 {
			t.Fatalf("one has the size %d", made.size)
		}
		if recipes.Find(of, ids.ID{n}, 1) != kept {
			t.Fatal("the newest is not kept")
		}
	}
	if held := int64(heap()-before) >> 20; held > 200 {
		t.Errorf("the recipes that are kept take %d MB", held)
	}
	runtime.KeepAlive(recipes)
}

// A recipe is compiled in a place for reading pages, at its customer's turn. New tasks do not wait
// for it.
func TestRecipesAreCompiledInAPlace(t *testing.T) {
	of := known{revision: 1}
	units := New(Config{View: func() View { return of }, Extractions: 1, Clock: clock.System{},
		Reader: reading.New("fetcher", reading.Config{})})
	task := &model.Task{URL: "http://a.test/", Scraper: ids.ID{1}, Revision: 1, Customer: "c"}
	chain, _, _ := units.BeginChain(task)
	kept := units.recipes.Find(of, task.Scraper, task.Revision)
	var place turns.Place
	units.extracting.Enter(t.Context(), "other", &place)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	turn := &Turn{Chain: chain, view: of}
	if turn.findRecipe(ctx) || kept.Compiled() != nil {
		t.Error("a recipe is compiled without a place")
	}
	place.Leave()
	if !turn.findRecipe(t.Context()) || turn.recipe == nil || turn.recipe != kept.Compiled() {
		t.Errorf("in a place it is %v", turn.recipe)
	}
	units.extracting.Enter(t.Context(), "other", &place)
	defer place.Leave()
	if !turn.findRecipe(t.Context()) {
		t.Error("one that is compiled needs a place")
	}
}

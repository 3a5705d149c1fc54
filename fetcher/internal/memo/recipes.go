package memo

import (
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of the compiled recipes kept. Their size is that of their patterns (some 80 bytes per
// instruction) and selectors. One recipe has less than a fifth of it.
const (
	MaxRecipes    = 256
	MaxRecipeSize = 2 << 20
)

type recipeKey struct {
	scraper  ids.ID
	revision uint32
}

// Recipes keeps the most recently used recipes, each compiled once to an R.
type Recipes[R any] struct {
	compile func(model.Recipe) (compiled *R, size int)

	mu    sync.Mutex
	known *cache.Sized[recipeKey, *Recipe[R]]
}

// NewRecipes returns a cache with room for most recipes.
func NewRecipes[R any](most int,
	compile func(model.Recipe) (compiled *R, size int)) *Recipes[R] {
	return &Recipes[R]{compile: compile,
		known: cache.NewSized[recipeKey, *Recipe[R]](most, MaxRecipeSize)}
}

// Find returns a recipe, or nil if the view does not have it.
func (c *Recipes[R]) Find(view interface {
	Recipe(scraper ids.ID, revision uint32) *client.Recipe
}, scraper ids.ID, revision uint32) *Recipe[R] {
	key := recipeKey{scraper, revision}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, known := c.known.Get(key); known {
		return r
	}
	found := view.Recipe(scraper, revision)
	if found == nil {
		return nil
	}
	r := &Recipe[R]{Source: found.Recipe, among: c, key: key}
	c.known.Add(key, r, 0)
	return r
}

// resize accounts for the size of a compiled recipe.
func (c *Recipes[R]) resize(r *Recipe[R], size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Resize(r.key, r, size)
}

// Recipe is compiled once, by its first user, which may take a tenth of a second.
type Recipe[R any] struct {
	Source model.Recipe

	among *Recipes[R]
	key   recipeKey
	once  sync.Once
	made  atomic.Pointer[R] // nil: not yet
}

// Compiled returns the compiled recipe, or nil if nobody has compiled it yet.
func (r *Recipe[R]) Compiled() *R { return r.made.Load() }

// Compile returns the compiled recipe, and compiles it first if necessary.
func (r *Recipe[R]) Compile() *R {
	r.once.Do(func() {
		made, size := r.among.compile(r.Source)
		r.made.Store(made)
		r.among.resize(r, size)
	})
	return r.made.Load()
}

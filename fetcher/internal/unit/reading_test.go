package unit

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

func title() model.Recipe {
	return model.Recipe{Type: model.SingleProduct,
		Fields: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}
}

// A recipe whose compilation panics is unusable; the next one compiles.
func TestPanicOfACompiler(t *testing.T) {
	config := Config{Reader: reading.New("fetcher", reading.Config{})}
	broken := config.compile(title(), func(model.Recipe) *recipe { panic("a compiler's") })
	if broken.extractor != nil || fault.CodeOf(broken.err) != fault.PageUnparsable {
		t.Errorf("%+v", broken)
	}
	if whole := config.compile(title(), compileRecipe); whole.extractor == nil || whole.err != nil {
		t.Errorf("%+v", whole)
	}
}

// panicking is a pager that panics at every page.
type panicking struct{}

func (panicking) next(string, uint32, string, string) string { panic("a pager's") }

// stateOf is a view of which a pager needs nothing else.
type stateOf struct{ View }

func (stateOf) Cluster() *client.Cluster { return &client.Cluster{HashSecret: 7} }

// If making a page's next address panics, the chain ends uncharged.
func TestPanicOfAPager(t *testing.T) {
	reader := reading.New("fetcher", reading.Config{})
	units := New(Config{Clock: clock.System{}, IDs: &ids.Sequence{}, Reader: reader})
	recipe := compileRecipe(title())
	recipe.pager, recipe.maxPages = panicking{}, 2
	task := &model.Task{URL: "http://a.test/", Budget: 2}
	on := Turn{Chain: &Chain{units: units, task: task, left: 2, url: task.URL}, view: stateOf{},
		recipe: recipe}
	next := on.deliver(extract.Page{URL: task.URL}, extract.Result{Rows: [][]byte{[]byte("{}")}})
	if p := next.Page; p == nil || p.Outcome != model.Errored ||
		p.Code != string(fault.PageUnparsable) || p.PriceRow != "" || !p.Last {
		t.Errorf("%+v", p)
	}
}

package extract

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
)

func TestSmoke(t *testing.T) {
	e, err := Compile(model.Recipe{Type: model.MultipleProducts, Fields: []model.Field{
		{Name: "_name", Selector: "li .n", Kind: model.Text}, {Name: "u", Selector: "a", Kind: model.Attr, Attr: "href"}},
		Pagination: &model.Pagination{Type: model.NextLink, Selector: ".next"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Extract(Page{URL: "http://x.test/a/b", Body: []byte(`<ul><li><a href=1><b class=n> A  B</b></a><li><b class=n>C</b></ul><a class=next href="?p=2">`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		t.Logf("%s", row)
	}
	t.Log(r.Next)
}

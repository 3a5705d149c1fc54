package extract

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// TestNextLinkOfTypesThatReadByThemselves: pagination is the same for all types.
func TestNextLinkOfTypesThatReadByThemselves(t *testing.T) {
	next := &model.Pagination{Type: model.NextLink, Selector: "a.next"}
	body := []byte(`<script type="application/ld+json">{"@type":"Product","name":"A"}</script><a class=next href="?page=2">more</a>`)
	for _, r := range []model.Recipe{
		{Type: model.ApplicationLDJSON, Pagination: next},
		{Type: model.ApplicationLDJSON, Pagination: next,
			Fields: []model.Field{{Name: "name", Selector: "$.name", Kind: model.Text}}},
		{Type: model.AIConf, Pagination: next,
			Schema: []byte(`{"properties":{"name":{"type":"string"}}}`)},
	} {
		got, err := mustCompile(t,
			r).Extract(Page{URL: "http://shop.test/list", ContentType: "text/html", Body: body})
		if err != nil || got.Next != "http://shop.test/list?page=2" || len(got.Rows) != 1 {
			t.Errorf("%s: %d rows, next %q, %v", r.Type, len(got.Rows), got.Next, err)
		}
	}
}

package extract

import (
	"encoding/json"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// The next page that a JSON body names is followed, as an address or as a cursor for a parameter.
func TestDetectNextInJSON(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`"next":"/list?page=2"`, `{"type":"NEXT_LINK","selector":"$.next"}`},
		{`"links":{"next":{"href":"https://shop.test/list?page=2"}}`,
			`{"type":"NEXT_LINK","selector":"$.links.next.href"}`},
		{`"meta":{"next_cursor":"abc"}`,
			`{"type":"JSON_CURSOR","param":"cursor","cursorPath":"$.meta.next_cursor"}`},
		{`"pageInfo":{"endCursor":"abc"}`,
			`{"type":"JSON_CURSOR","param":"after","cursorPath":"$.pageInfo.endCursor"}`},
		{`"nextPage":2`, `{"type":"JSON_CURSOR","param":"page","cursorPath":"$.nextPage"}`},
		{`"links":[{"rel":"self","href":"/list"},{"rel":"next","href":"/list?page=2"}]`,
			`{"type":"NEXT_LINK","selector":"$.links[?@.rel == 'next'].href"}`},
		{`"pageInfo":{"endCursor":"abc","hasNextPage":false}`, `null`},
		{`"has_more":false,"cursor":"abc"`, `null`},
		{`"next":null`, `null`},
		{`"paging":{"next":""}`, `null`},
		{`"nextPage":0`, `null`},
	} {
		got := proposalsOf(t, model.Recipe{}, "application/json",
			`{"items":[{"id":1,"title":"A"},{"id":2,"title":"B"}],`+c.body+`}`)
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", c.body)
		}
		pagination, err := json.Marshal(got[0].Scraper.SourceConfig.Pagination)
		if err != nil || string(pagination) != c.want {
			t.Errorf("%s: %s, want %s", c.body, pagination, c.want)
		}
	}
}

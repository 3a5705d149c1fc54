package data_test

import (
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/rowstore"
)

// An empty answer names the field whose texts the filter does not compare with its numbers. It
// gives no reason if the numbers themselves are why.
func TestReasonsOfEmptyAnswers(t *testing.T) { onStores(t, reasonsOfEmptyAnswers) }

func reasonsOfEmptyAnswers(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.run(t, r.other, `{"price":"10.50 €","size":"3","name":"<b>"}`, `{"price":"sold","size":4}`)
	r.run(t, r.other, `{"size":"n/a","name":"Ten"}`)
	for filter, field := range map[string]string{
		`{"price":{"$gt":5}}`:                                "price",
		`{"price":{"$between":[5,20]},"name":"<b>"}`:         "price",
		`{"$or":[{"size":{"$gt":9}},{"price":{"$lte":99}}]}`: "price",
		`{"size":{"$gt":2},"price":{"$lt":99}}`:              "price",
		`{"price":{"$gt":5},"name":"Ten"}`:                   "", // that row has no price
		`{"size":{"$gt":9}}`:                                 "", // 3 and 4 are less, and n/a holds none
		`{"price":{"$gt":"5"},"name":"none"}`:                "",
		`{"price":5}`:                                        "",
		`{"none":{"$gt":5}}`:                                 "",
	} {
		for _, path := range []string{"/api/scraper/data?groupId=" + r.group.String() + "&",
			"/api/scraper/data?sort=price&scraperId=" + r.other.String() + "&",
			"/api/scraper/data/group/" + r.group.String() + "?",
			"/api/scraper/data/group/" + r.group.String() + "/client?"} {
			r.Run(t, apitest.Scenario{Name: filter, As: apitest.Reader,
				Do: "GET " + path + "filters=" + url.QueryEscape(filter), Status: 200,
				Check: func(t *testing.T, a apitest.Answer) {
					reason := a.Header.Get("Shoal-Reason")
					if strings.Contains(string(a.Body), "_rowId") || field == "" && reason != "" ||
						!strings.Contains(reason, field) || strings.Contains(reason, "10.50") {
						t.Errorf("%s %s: %q, body %s", path, filter, reason, a.Body)
					}
				}})
		}
	}
	for _, query := range []string{"", "&" + filters(`{"size":{"$gt":3}}`)} { // rows need none
		r.Run(t, apitest.Scenario{Name: query, As: apitest.Reader,
			Do: readPath + "?groupId=" + r.group.String() + query, Status: 200,
			Headers: map[string]string{"Shoal-Reason": ""}})
	}
}

package extract

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// fetcher reads pages of a synthetic web.
func fetcher(t *testing.T, web *synthweb.Web) func(url string) Page {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, web.Addr())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return func(url string) Page {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return Page{URL: url, ContentType: response.Header.Get("Content-Type"), Body: body}
	}
}

// TestDetectTheSyntheticWeb: the first proposal for a listing or product page reads every other
// page of its kind. On all sites the rows match the truth that the site's authors state.
func TestDetectTheSyntheticWeb(t *testing.T) {
	for _, kind := range []struct {
		name string
		mix  synthweb.Mix
		want string // strategy and type
		next bool
		// columns maps proposed field names to the names in the truth.
		columns map[string]string
	}{
		{"product", synthweb.Products(), "product SINGLE_PRODUCT", false,
			map[string]string{"title": "title", "price": "price", "listPrice": "was", "sku": "sku",
				"availability": "stock"}},
		{"listing", synthweb.Listings(), "list MULTIPLE_PRODUCTS", true,
			map[string]string{"title": "title", "price": "price", "listPrice": "was", "sku": "sku",
				"availability": "stock", "url": "link"}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			web, err := synthweb.Start(synthweb.Config{Hosts: 8, PagesPerHost: 5, Mix: kind.mix,
				PageBytes: []int{6_000}})
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			fetch := fetcher(t, web)
			var proposed *Extractor
			for url := range web.URLs(40) {
				truth, err := web.Truth(url)
				if err != nil {
					t.Fatal(err)
				}
				if proposed == nil {
					if truth.Pages[0].Rows[0]["was"] == nil { // the page shows everything there is
						continue
					}
					proposed = proposedFor(t, fetch(url), kind.want, kind.next)
				}
				for _, want := range truth.Pages {
					got, err := proposed.Extract(fetch(want.URL))
					if err != nil || len(got.Rows) != len(want.Rows) {
						t.Fatalf("%s: %d rows of %d, %v", want.URL, len(got.Rows), len(want.Rows),
							err)
					}
					for i, line := range got.Rows {
						var row map[string]any
						if err := json.Unmarshal(line, &row); err != nil {
							t.Fatal(err)
						}
						for name, truly := range kind.columns {
							if row[name] != want.Rows[i][truly] {
								t.Errorf("%s row %d: %s is %v, want %v", want.URL, i, name,
									row[name], want.Rows[i][truly])
							}
						}
					}
				}
			}
			if proposed == nil {
				t.Fatal("no page with a reduced price")
			}
		})
	}
}

// proposedFor compiles the first proposal for a page.
func proposedFor(t *testing.T, p Page, want string, next bool) *Extractor {
	t.Helper()
	detector := mustCompile(t, model.Recipe{Type: model.Detection})
	found, err := detector.Extract(p)
	if err != nil || len(found.Rows) == 0 {
		t.Fatalf("%s: %d proposals, %v", p.URL, len(found.Rows), err)
	}
	var first Proposal
	if err := json.Unmarshal(found.Rows[0], &first); err != nil {
		t.Fatal(err)
	}
	t.Log(first.String())
	if got := first.Strategy + " " + string(first.Scraper.Type); got != want {
		t.Errorf("first is %s, want %s", got, want)
	}
	pagination := first.Scraper.SourceConfig.Pagination
	if (pagination != nil) != next {
		t.Errorf("pagination is %+v", pagination)
	}
	return mustCompile(t, first.Scraper.Recipe())
}

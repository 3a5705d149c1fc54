package synthweb_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/testkit/synthweb"
)

func only(class synthweb.Class) synthweb.Mix { return synthweb.Mix{{Class: class, Weight: 1}} }

// rowOf returns the truth of a page with one row.
func rowOf(t *testing.T, web *synthweb.Web, address string) synthweb.Row {
	t.Helper()
	truth, err := web.Truth(address)
	if err != nil || len(truth.Pages) != 1 || len(truth.Pages[0].Rows) != 1 {
		t.Fatalf("%s: %+v, %v", address, truth, err)
	}
	return truth.Pages[0].Rows[0]
}

func TestAPI(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 3, PagesPerHost: 10, Mix: only(synthweb.API),
		PageBytes: []int{10_000}})
	client := newClient(t, web)
	for address := range web.URLs(30) {
		page := client.mustGet(t, address)
		var got struct{ URL, Title, Price, Was, SKU, Stock any }
		if err := json.Unmarshal(page.body, &got); err != nil {
			t.Fatal(err)
		}
		row := synthweb.Row{"title": got.Title, "price": got.Price, "was": got.Was, "sku": got.SKU,
			"stock": got.Stock,
			"offer": got.Was != nil, "canonical": got.URL}
		if diff := cmp.Diff(rowOf(t, web, address), row); diff != "" {
			t.Errorf("%s (-truth +seen):\n%s", address, diff)
		}
		if page.header.Get("Content-Type") != "application/json" || len(page.body) < 8_000 ||
			len(page.body) > 12_000 {
			t.Errorf("%v, %d bytes", page.header, len(page.body))
		}
	}
}

func TestLinkedData(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 3, PagesPerHost: 10, Mix: only(synthweb.LinkedData)})
	client := newClient(t, web)
	for address := range web.URLs(30) {
		doc, err := goquery.NewDocumentFromReader(bytes.NewReader(client.mustGet(t, address).body))
		if err != nil {
			t.Fatal(err)
		}
		var stated struct {
			Type   string `json:"@type"`
			Name   string
			SKU    string
			Offers struct{ Price string }
		}
		if err := json.Unmarshal([]byte(doc.Find("script[type='application/ld+json']").Text()),
			&stated); err != nil {
			t.Fatal(err)
		}
		row := rowOf(t, web, address)
		if stated.Type != "Product" || stated.Name != row["title"] || stated.SKU != row["sku"] ||
			stated.Offers.Price != row["price"] {
			t.Errorf("%s states %+v, the page shows %v", address, stated, row)
		}
	}
}

// TestPagesAreMadeLikeTheWebs: like real pages, they have about one tag per 40 bytes.
func TestPagesAreMadeLikeTheWebs(t *testing.T) {
	for _, size := range []int{10_000, 28_000, 100_000, 300_000} {
		web, err := synthweb.New(synthweb.Config{Hosts: 1, PagesPerHost: 1, PageBytes: []int{size}})
		if err != nil {
			t.Fatal(err)
		}
		for address := range web.URLs(1) {
			body, _, err := web.Body(address)
			if err != nil {
				t.Fatal(err)
			}
			if tags := bytes.Count(body, []byte("<")); tags < size/80 || tags > size/20 {
				t.Errorf("%d tags in %d bytes", tags, len(body))
			}
		}
	}
}

func TestBodyIsWhatIsServed(t *testing.T) {
	mix := synthweb.RealWeb()
	web := start(t, synthweb.Config{Hosts: 4, PagesPerHost: 50, Mix: mix})
	client := newClient(t, web)
	served := 0
	for address := range web.URLs(200) {
		body, contentType, err := web.Body(address)
		if err != nil {
			continue
		}
		served++
		page := client.mustGet(t, address)
		if string(page.body) != string(body) || page.header.Get("Content-Type") != contentType {
			t.Errorf("%s is served otherwise", address)
		}
	}
	if served < 150 {
		t.Errorf("only %d of 200 addresses have a body", served)
	}
	if _, _, err := web.Body("http://elsewhere.test/"); err == nil {
		t.Error("a body of another web's page")
	}
}

// location is an entry of a sitemap.
type location struct {
	Loc string `xml:"loc"`
}

func TestSitemaps(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 2, PagesPerHost: 25, Sitemaps: true, SitemapURLs: 10,
		Robots: []synthweb.Robots{synthweb.RobotsEmpty, synthweb.RobotsDisallow}})
	client := newClient(t, web)
	listed := func(address string) (found []string) {
		var document struct {
			Sitemaps []location `xml:"sitemap"`
			URLs     []location `xml:"url"`
		}
		if err := xml.Unmarshal(client.mustGet(t, address).body, &document); err != nil {
			t.Fatal(err)
		}
		for _, entry := range append(document.Sitemaps, document.URLs...) {
			found = append(found, entry.Loc)
		}
		return found
	}
	var got []string
	for _, host := range web.Hosts() {
		robots := string(client.mustGet(t, "http://"+host+"/robots.txt").body)
		_, address, found := strings.Cut(robots, "Sitemap: ")
		if !found {
			t.Fatalf("%s names no sitemap: %q", host, robots)
		}
		parts := listed(strings.TrimSpace(address))
		if len(parts) != 3 {
			t.Errorf("%d sitemaps, want 3 of 10 addresses at most", len(parts))
		}
		for _, part := range parts {
			got = append(got, listed(part)...)
		}
	}
	want := slices.Collect(web.URLs(50))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-web +sitemaps):\n%s", diff)
	}
	without := newClient(t, start(t, synthweb.Config{Hosts: 1, PagesPerHost: 1}))
	if status := without.mustGet(t,
		"http://shop-00000.example/sitemap.xml").status; status != http.StatusNotFound {
		t.Errorf("a site without sitemaps answers %d", status)
	}
}

func TestTLS(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 3, PagesPerHost: 2, TLS: true,
		Chains: []synthweb.Chain{synthweb.ChainDirect, synthweb.ChainP256, synthweb.ChainRSA}})
	client := newClient(t, web)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(web.Authority()) {
		t.Fatal("the authority is no certificate")
	}
	client.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	for address := range web.URLs(6) {
		row := rowOf(t, web, address)
		if page := client.mustGet(t, address); !strings.HasPrefix(address, "https://") ||
			!strings.Contains(string(page.body), row["canonical"].(string)) {
			t.Errorf("%s: %s", address, page.body)
		}
	}
	recount, err := web.Recount()
	if err != nil || len(recount.URLs) != 6 ||
		!strings.HasPrefix(slices.Collect(web.URLs(1))[0], "https://shop-00000.") {
		t.Errorf("%+v, %v", recount, err)
	}
	if _, err := client.get(t.Context(), "https://elsewhere.example/", enough); err == nil {
		t.Error("a site that does not exist has a certificate")
	}
	stats, err := web.Stats()
	if err != nil || stats.Connections < 3 || stats.Connections > 7 {
		t.Errorf("%d connections to 3 sites, %v", stats.Connections, err)
	}
	if _, err := synthweb.New(synthweb.Config{Chains: []synthweb.Chain{9}}); err == nil {
		t.Error("a chain that there is not was taken")
	}
	if plain := start(t, synthweb.Config{}); plain.Authority() != nil {
		t.Error("a web without TLS has an authority")
	}
}

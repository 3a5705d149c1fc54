package synthweb_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/net/publicsuffix"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestMain checks that a closed web leaves nothing behind. It ignores what fasthttp keeps for the
// process's whole life, or ends on its own some seconds later.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp/stackless.funcWorker"))
}

func TestTruthIsWhatAClientSees(t *testing.T) {
	web := start(t, every())
	client := newClient(t, web)
	seen := map[synthweb.Class]int{}
	for address := range web.URLs(8 * 40) {
		truth, err := web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		seen[truth.Class]++
		fields, patience := synthweb.ProductFields(), enough
		switch truth.Class {
		case synthweb.Listing, synthweb.ChangingListing, synthweb.BrokenListing:
			fields = synthweb.ItemFields()
		case synthweb.Article:
			fields = synthweb.ArticleFields()
		case synthweb.Stall:
			patience = 20 * time.Millisecond
		}
		next := address
		for i, want := range truth.Pages {
			if want.URL != next {
				t.Fatalf("%s: page %d is %q, the link says %q", address, i+1, want.URL, next)
			}
			got := client.crawl(t, next, fields, patience)
			compare(t, want, got)
			next = got.next
		}
		if next != "" {
			t.Errorf("%s: the chain goes on to %s after its %d pages", address, next,
				len(truth.Pages))
		}
	}
	for class := synthweb.Product; class <= synthweb.LinkedData; class++ {
		if seen[class] == 0 {
			t.Errorf("no page of class %q was tried", class)
		}
	}
	compareCounts(t, web, client)
}

func compare(t *testing.T, want synthweb.Page, got found) {
	t.Helper()
	if got.Outcome != want.Outcome {
		t.Errorf("%s: got outcome %d (%s %d)", describe(want), got.Outcome, got.Code, got.Status)
		return
	}
	if want.Outcome == model.Errored {
		if !slices.Contains(want.Codes, got.Code) || got.Status != want.Status {
			t.Errorf("%s: want %v %d, got %s %d", describe(want), want.Codes, want.Status, got.Code,
				got.Status)
		}
		return
	}
	if got.Final != want.FinalURL() {
		t.Errorf("%s: found at %s, want %s", describe(want), got.Final, want.FinalURL())
	}
	if want.Changes {
		first, ok := synthweb.FetchOf(got.Rows[0])
		for _, row := range got.Rows {
			if fetch, _ := synthweb.FetchOf(row); !ok || fetch != first {
				t.Errorf("%s: rows of one fetch differ: %v", describe(want), row)
			}
			row["stock"] = want.Rows[0]["stock"]
		}
	}
	if diff := cmp.Diff(want.Rows, got.Rows); diff != "" {
		t.Errorf("%s: rows (-truth +seen):\n%s", describe(want), diff)
	}
}

// compareCounts compares the log with the client's requests.
func compareCounts(t *testing.T, web *synthweb.Web, client *client) {
	t.Helper()
	recount, err := web.Recount()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for address, count := range recount.URLs {
		got[address] = count.Requests
	}
	for host, count := range recount.Hosts {
		got["http://"+host+"/robots.txt"] = count.RobotsRequests
	}
	if diff := cmp.Diff(client.asked, got); diff != "" {
		t.Errorf("requests per address (-asked +logged):\n%s", diff)
	}
	stats, err := web.Stats()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range client.asked {
		total += n
	}
	if int(stats.Requests) != total || stats.Unlogged != 0 || stats.CPU <= 0 {
		t.Errorf("stats %+v, asked %d", stats, total)
	}
}

func TestPageParameter(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 4, PagesPerHost: 20,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 2},
			{Class: synthweb.ChangingListing, Weight: 1}, {Class: synthweb.Product, Weight: 1}}})
	client := newClient(t, web)
	repeats := map[bool]int{}
	for address := range web.URLs(80) {
		truth, err := web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		repeats[truth.RepeatsLast]++
		page := func(n int) []byte { return client.mustGet(t, address+"?page="+itoa(n)).body }
		last, beyond := page(len(truth.Pages)), page(len(truth.Pages)+1)
		rows, _ := extract(t, beyond, synthweb.ItemFields())
		switch {
		case truth.RepeatsLast && string(last) != string(beyond):
			t.Errorf("%s: the page after the last is not the last again", address)
		case !truth.RepeatsLast && len(rows) != 0:
			t.Errorf("%s: the page after the last has %d rows", address, len(rows))
		}
		if string(page(1)) != string(client.mustGet(t, address).body) &&
			truth.Class != synthweb.ChangingListing {
			t.Errorf("%s: ?page=1 is another page", address)
		}
	}
	if repeats[true] == 0 || repeats[false] == 0 {
		t.Errorf("both ends of a chain have to occur, got %v", repeats)
	}
}

func TestSameSeedSameWeb(t *testing.T) {
	config := every()
	one, two := start(t, config), start(t, config)
	config.Seed++
	other := start(t, config)
	clientOne, clientTwo := newClient(t, one), newClient(t, two)
	if diff := cmp.Diff(slices.Collect(one.URLs(100)), slices.Collect(two.URLs(100))); diff != "" {
		t.Fatal(diff)
	}
	if slices.Equal(slices.Collect(one.URLs(100)), slices.Collect(other.URLs(100))) {
		t.Error("another seed makes the same web")
	}
	for address := range one.URLs(100) {
		truthOne, errOne := one.Truth(address)
		truthTwo, errTwo := two.Truth(address)
		if errOne != nil || errTwo != nil {
			t.Fatal(errOne, errTwo)
		}
		if diff := cmp.Diff(truthOne, truthTwo); diff != "" {
			t.Fatal(diff)
		}
		if len(truthOne.Pages[0].Rows) > 0 {
			a, b := clientOne.mustGet(t, address), clientTwo.mustGet(t, address)
			if string(a.body) != string(b.body) {
				t.Errorf("%s differs", address)
			}
		}
	}
}

func TestURLsAreDistinctOverAllSites(t *testing.T) {
	web, err := synthweb.New(synthweb.Config{Hosts: 50, PagesPerHost: 20, Mix: synthweb.Rough()})
	if err != nil {
		t.Fatal(err)
	}
	addresses, domains := map[string]bool{}, map[string]bool{}
	for address := range web.URLs(5000) {
		addresses[address] = true
	}
	for _, host := range web.Hosts() {
		domain, err := publicsuffix.EffectiveTLDPlusOne(host)
		if err != nil {
			t.Fatal(err)
		}
		domains[domain] = true
	}
	if len(addresses) != 1000 || len(domains) != 50 {
		t.Errorf("%d addresses, %d registrable domains; want 1000 and 50", len(addresses),
			len(domains))
	}
}

func TestPageSizes(t *testing.T) {
	for _, size := range []int{2_000, 10_000, 28_000, 100_000} {
		web := start(t, synthweb.Config{Hosts: 1, PagesPerHost: 5, PageBytes: []int{size}})
		client := newClient(t, web)
		for address := range web.URLs(5) {
			if got := len(client.mustGet(t, address).body); got < size*8/10 || got > size*12/10 {
				t.Errorf("a page of %d bytes where about %d were asked for", got, size)
			}
		}
	}
}

func TestTemplate(t *testing.T) {
	web := start(t, withTemplate())
	client := newClient(t, web)
	addresses := slices.Collect(web.URLs(100))
	if len(addresses) != 12 || addresses[4] != "http://shop-00001.example/p/00004" {
		t.Fatalf("addresses %v", addresses)
	}
	want := `<h1 class="title">Product name 00004</h1><p>00004</p><div class="sku">SKU-00000004</div>`
	if got := string(client.mustGet(t, addresses[4]).body); got != want {
		t.Errorf("got %s", got)
	}
	truth, err := web.Truth(addresses[4])
	if err != nil {
		t.Fatal(err)
	}
	row := synthweb.Row{"title": "Product name 00004", "sku": "SKU-00000004", "offer": false}
	if diff := cmp.Diff([]synthweb.Row{row}, truth.Pages[0].Rows); diff != "" {
		t.Error(diff)
	}
	if status := client.mustGet(t,
		"http://shop-00000.example/p/00004").status; status != http.StatusNotFound {
		t.Errorf("another site's number answers %d", status)
	}
}

func TestBusyAsksForPatience(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, RetryAfter: 3 * time.Second,
		Mix: synthweb.Mix{{Class: synthweb.Busy, Weight: 1}}})
	page := newClient(t, web).mustGet(t, "http://shop-00000.example/busy/0")
	if page.status != http.StatusServiceUnavailable || page.header.Get("Retry-After") != "3" {
		t.Errorf("%d with Retry-After %q", page.status, page.header.Get("Retry-After"))
	}
}

func TestRobots(t *testing.T) {
	web := start(t, synthweb.Config{CrawlDelay: 2,
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty,
			synthweb.RobotsDisallow, synthweb.RobotsDelay}})
	client := newClient(t, web)
	for i, want := range []struct {
		status int
		body   string
	}{{404, ""}, {200, ""}, {200, "User-agent: *\nDisallow: /private/\n"},
		{200, "User-agent: *\nCrawl-delay: 2\n"}} {
		page := client.mustGet(t, "http://"+web.Hosts()[i]+"/robots.txt")
		if page.status != want.status || string(page.body) != want.body {
			t.Errorf("host %d: %d %q", i, page.status, page.body)
		}
	}
}

func TestDemo(t *testing.T) {
	web := start(t, synthweb.Demo())
	client := newClient(t, web)
	outcomes := map[model.Outcome]int{}
	for address := range web.URLs(10_000) {
		truth, err := web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		outcomes[truth.Pages[0].Outcome]++
	}
	if total := outcomes[model.Delivered] + outcomes[model.Errored]; total != 2000 ||
		len(web.Hosts()) != 40 {
		t.Errorf("%d addresses on %d sites", total, len(web.Hosts()))
	}
	if errored := outcomes[model.Errored]; errored < 10 || errored > 100 {
		t.Errorf("%d errors: a few, not many, are wanted", errored)
	}
	_, port, err := net.SplitHostPort(web.Addr())
	if err != nil {
		t.Fatal(err)
	}
	index := client.mustGet(t, "http://"+web.Addr()+"/")
	shop := client.mustGet(t, "http://birch-books.localhost:"+port+"/")
	if !strings.Contains(string(index.body), "http://birch-books.localhost:"+port+"/") ||
		!strings.Contains(string(shop.body), "<h1>Birch Books</h1>") {
		t.Error("the shops cannot be looked at in a browser")
	}
}

func TestOwnAddressShowsStats(t *testing.T) {
	web := start(t, synthweb.Config{})
	client := newClient(t, web)
	client.mustGet(t, "http://shop-00000.example/product/0")
	var stats synthweb.Stats
	if err := json.Unmarshal(client.mustGet(t, "http://"+web.Addr()+"/stats").body,
		&stats); err != nil {
		t.Fatal(err)
	}
	if stats.Requests != 1 || stats.CPU <= 0 {
		t.Errorf("%+v", stats)
	}
	if status := client.mustGet(t,
		"http://elsewhere.example/").status; status != http.StatusMisdirectedRequest {
		t.Errorf("a site that does not exist answers %d", status)
	}
}

func TestHeldSitesDoNotAnswer(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 1, PagesPerHost: 1})
	client := newClient(t, web)
	release := web.Hold()
	var released atomic.Bool
	var asking sync.WaitGroup
	defer func() { // a held web cannot be closed, also if the test fails
		released.Store(true)
		release()
		asking.Wait()
	}()
	asking.Go(func() {
		_, err := client.get(t.Context(), web.URL(0, 0), enough)
		if err != nil || !released.Load() {
			t.Errorf("answered while held: %v, %v", !released.Load(), err)
		}
	})
	for len(slices.Collect(web.Requests())) == 0 {
		client.mustGet(t, "http://localhost/stats") // the web's own pages are never held
	}
	for range 10 { // meanwhile the site would answer
		client.mustGet(t, "http://localhost/stats")
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	web, err := synthweb.New(synthweb.Config{Hosts: 1, PagesPerHost: 1, SlowHosts: 1,
		SlowLatency: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- web.Serve(ctx, ln) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn,
		"GET /product/0 HTTP/1.1\r\nHost: shop-00000.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := web.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestConfigErrorsNameTheSetting(t *testing.T) {
	_, err := synthweb.New(synthweb.Config{Hosts: tooManyHosts, PagesPerHost: -1,
		Suffix: ".Example", SlowHosts: 1,
		PageBytes: []int{1}, Template: []byte("no number"),
		Mix: synthweb.Mix{{Class: synthweb.API + 1, Weight: -1}}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"Hosts", "PagesPerHost", "Suffix", "SlowLatency", "PageBytes",
		"Template", "Mix"} {
		if !strings.Contains(err.Error(), "synthweb: "+field+":") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

const tooManyHosts = synthweb.MaxHosts + 1

func TestTruthOfWhatIsNotThere(t *testing.T) {
	web, err := synthweb.New(synthweb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"http://shop-99999.example/",
		"https://shop-00001.example/product/1", "http://[",
		""} {
		if truth, err := web.Truth(address); err == nil {
			t.Errorf("%q has the truth %+v", address, truth)
		}
	}
	for _, path := range []string{"/product/100", "/product/x", "/gone/1", "/product",
		"/product/1-1", "/landing/1-1"} {
		truth, err := web.Truth("http://shop-00001.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if page := truth.Pages[0]; page.Status != http.StatusNotFound ||
			!slices.Contains(page.Codes, fault.PageStatus) {
			t.Errorf("%s: %+v", path, page)
		}
	}
}

func TestItemPagesExist(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 2, PagesPerHost: 2, Mix: synthweb.Listings()})
	client := newClient(t, web)
	for address := range web.URLs(4) {
		truth, err := web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range truth.Pages[0].Rows {
			link := row["link"].(string)
			seen := client.crawl(t, link,
				[]model.Field{{Name: "title", Selector: "h1.title", Kind: model.Text},
					{Name: "sku", Selector: "div.sku", Kind: model.Text}}, time.Minute)
			want := []synthweb.Row{{"title": row["title"], "sku": row["sku"]}}
			if diff := cmp.Diff(want, seen.Rows); diff != "" {
				t.Errorf("%s: %s", link, diff)
			}
		}
	}
}

package harvest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/storetest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	guards "shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// hasty is a clock that advances at once when somebody waits.
type hasty struct{ *clock.Manual }

// After implements clock.Clock.
func (h hasty) After(d time.Duration) <-chan time.Time {
	h.Advance(d)
	there := make(chan time.Time, 1)
	there <- h.Now()
	return there
}

// rig is a scraper whose site is on the loopback.
type rig struct {
	t       *testing.T
	clock   hasty
	ids     ids.Source
	client  *clienttest.Client
	store   rowstore.Store
	egress  *egress.Client
	sender  Sender        // egress, or what stands before it
	reader  *guards.Guard // nil: keeps nothing
	place   string        // of the site
	scraper ids.ID

	mu     sync.Mutex
	files  map[string]string  // bodies by host and path
	status map[string]int     // of files with another status than 200
	large  func(to io.Writer) // writes the body of /large.xml; nil: there is none
	asked  []string
	at     []time.Time // times of the requests
}

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	return newRigOn(t, storetest.NewEmbedded(t), files)
}

func newRigOn(t *testing.T, store rowstore.Store, files map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, files: files, status: map[string]int{}}
	r.clock = hasty{clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	r.ids = ids.Random{Now: r.clock.Now}
	r.client = clienttest.New(t, r.clock)
	r.store = store
	site := httptest.NewServer(http.HandlerFunc(r.serve))
	r.place = site.Listener.Addr().String()
	var err error
	r.egress, err = egress.New(egress.Config{Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8")}, Origins: map[string]string{"*.test": r.place,
		"dead.example": "127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	r.sender = r.egress
	t.Cleanup(func() {
		r.egress.Close()
		site.Close()
	})
	r.client.Must(t, client.OpenCustomer{Customer: "alice", Entry: r.ids.New()})
	group := r.ids.New()
	r.client.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "g"})
	r.scraper = r.ids.New()
	r.client.Must(t, client.PutScraper{Create: true, ID: r.scraper, Customer: "alice",
		Group: group, Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	return r
}

func (r *rig) serve(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	at := q.Host + q.URL.RequestURI()
	r.asked, r.at = append(r.asked, at), append(r.at, r.clock.Now())
	body, there := r.files[at]
	status := r.status[at]
	r.mu.Unlock()
	switch {
	case status/100 == 3:
		http.Redirect(w, q, body, status)
	case status != 0:
		w.WriteHeader(status)
	case r.large != nil && q.URL.Path == "/large.xml":
		r.large(w)
	case !there:
		http.NotFound(w, q)
	default:
		_, _ = io.WriteString(w, body) // an error means that the client is gone
	}
}

func packed(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // into memory
	_ = z.Close()
	return out.String()
}

// urlset makes a sitemap of addresses.
func urlset(urls ...string) string {
	text := "<urlset>"
	for _, url := range urls {
		text += "<url><loc>" + url + "</loc></url>"
	}
	return text + "</urlset>"
}

// index makes a sitemap of sitemaps.
func index(urls ...string) string {
	text := "<sitemapindex>"
	for _, url := range urls {
		text += "<sitemap><loc>" + url + "</loc></sitemap>"
	}
	return text + "</sitemapindex>"
}

// ask requests a harvest of an address.
func (r *rig) ask(url string, most uint32) ids.ID {
	r.t.Helper()
	id := r.ids.New()
	r.client.Must(r.t, client.AskHarvest{ID: id, Customer: "alice", Scraper: r.scraper, URL: url,
		Cap: most})
	return id
}

// step takes one step of a harvest. It dies at the point with the number dies; 0: nowhere.
func (r *rig) step(id ids.ID, dies int) (end work.End, died bool) {
	r.t.Helper()
	defer func() {
		value := recover()
		if caught, is := value.(*guards.Panic); is {
			value = caught.Value
		}
		if died = value == "dies"; !died && value != nil {
			panic(value)
		}
	}()
	outcome, err := r.kind(func(string) {
		if dies--; dies == 0 {
			panic("dies")
		}
	}).Step(r.t.Context(), work.Item{ID: id, Kind: work.Harvest, Customer: "alice"})
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome.End, false
}

func (r *rig) kind(point func(string)) work.Kind {
	return Kind(Config{Client: r.client, Store: r.store, Sender: r.sender, Clock: r.clock,
		HostRate: 1, IDs: r.ids, Point: point, Reader: r.reader})
}

// finish takes steps of a harvest until its end.
func (r *rig) finish(id ids.ID) *client.Harvest {
	r.t.Helper()
	for range 100 {
		if end, _ := r.step(id, 0); end == work.Ended {
			return r.client.View().Harvest(id)
		}
	}
	r.t.Fatal("it does not end")
	return nil
}

// found lists what a harvest has found, in order.
func (r *rig) found(id ids.ID) (urls []string) {
	r.t.Helper()
	for page := 0; ; page++ {
		rows, err := r.store.Entries(r.t.Context(), rowstore.EntriesQuery{Harvest: id,
			Filter: Entries(), Offset: 1_000 * page, Limit: 1_000})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, doc := range rows {
			var e row
			if err := json.Unmarshal(doc, &e); err != nil {
				r.t.Fatal(err)
			}
			urls = append(urls, e.URL)
		}
		if len(rows) < 1_000 {
			return urls
		}
	}
}

func (r *rig) wantAsked(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.asked, want) {
		r.t.Errorf("asked for %q, want %q", r.asked, want)
	}
}

// shop is a site with an index three levels deep and sitemaps of all forms.
func shop() map[string]string {
	return map[string]string{
		"a.test/robots.txt": "User-agent: *\nDisallow: /no\nSitemap: /index.xml\n" +
			"Sitemap: http://a.test/feed\nSitemap: http://cdn.test/a.xml\n",
		"a.test/index.xml": index("/b.xml", "/c.xml.gz", "/index.xml", "/b.xml#again",
			"http://other.test/x.xml", "/no/hidden.xml", "/gone.xml"),
		"a.test/b.xml":    index("/c.xml.gz", "/d.xml"),
		"a.test/c.xml.gz": packed(urlset("/1", "http://www.a.test/2", "/1#part")),
		"a.test/d.xml":    index("/e.xml") + "trash",
		"a.test/e.xml": `<urlset xmlns:x="x" xmlns:i="i"><url><loc>/3</loc><x:link rel="alternate"
			hreflang="de" href="/de/3"/><x:link rel="alternate" hreflang="fr"
			href="http://fr.test/3"/><i:image><i:loc>/3.png</i:loc><i:title>Three</i:title>
			</i:image></url></urlset>`,
		"a.test/feed": `<rss><channel><item><link>http://a.test/1</link></item><item>
			<link>http://a.test/4</link></item></channel></rss>`,
		"cdn.test/robots.txt": "",
		"cdn.test/a.xml": urlset("http://a.test/5", "http://b.test/named", "http://cdn.test/no",
			"http://fr.test/no", "mailto:x"),
		"b.test/robots.txt":  "Sitemap: http://cdn.test/a.xml",
		"fr.test/robots.txt": "Sitemap: http://a.test/index.xml",
	}
}

var shopFound = []string{"http://a.test/1", "http://a.test/4", "http://a.test/5",
	"http://b.test/named", "http://www.a.test/2", "http://a.test/3", "http://a.test/de/3",
	"http://fr.test/3"}

// A site's sitemaps are found and read once each, one after the other, whichever names which. Files
// that robots.txt forbids are not read. Other hosts count only if they vouch for the sitemap.
func TestHarvest(t *testing.T) {
	r := newRig(t, shop())
	id := r.ask("http://a.test/shop/", 500_000)
	h := r.finish(id)
	if found := r.found(id); !slices.Equal(found, shopFound) {
		t.Errorf("found %q", found)
	}
	if h.State != client.HarvestDone || int(h.Count) != len(shopFound) {
		t.Errorf("%+v", h)
	}
	r.wantAsked("a.test/robots.txt", "a.test/index.xml", "a.test/feed", "cdn.test/robots.txt",
		"cdn.test/a.xml", "b.test/robots.txt", "fr.test/robots.txt", "a.test/b.xml",
		"a.test/c.xml.gz", "a.test/gone.xml", "a.test/d.xml", "a.test/e.xml")
	last := map[string]time.Time{}
	for i, at := range r.asked {
		host, _, _ := strings.Cut(at, "/")
		if was, known := last[host]; known && r.at[i].Sub(was) < time.Second {
			t.Errorf("%s is asked for %v after the one before", at, r.at[i].Sub(was))
		}
		last[host] = r.at[i]
	}
	rows, err := r.store.Entries(t.Context(), rowstore.EntriesQuery{Harvest: id,
		Filter: Entries(), Limit: 1_000})
	if err != nil || len(rows) < 6 || !strings.Contains(string(rows[5]),
		`"image":"http://a.test/3.png","imageTitle":"Three","lastSeen":"2026-01-02T03:04:`) {
		t.Errorf("%s: %v", rows, err)
	}
}

// A harvest killed at any of its points resumes where it was. It finds the same addresses, once
// each, and requests no file again that it has read.
func TestKilledAtEachPoint(t *testing.T) {
	for dies := 1; ; dies++ {
		r := newRig(t, shop())
		id := r.ask("http://a.test/", 500_000)
		_, died := r.step(id, dies)
		h := r.finish(id)
		if found := r.found(id); !slices.Equal(found, shopFound) ||
			h.Count != uint32(len(shopFound)) {
			t.Errorf("dies at %d: %d, found %q", dies, h.Count, found)
		}
		times := map[string]int{}
		for _, at := range r.asked {
			if times[at]++; times[at] > 2 {
				t.Errorf("dies at %d: %s is asked for %d times", dies, at, times[at])
			}
		}
		if !died {
			return
		}
	}
}

// Two owners at once, of which either may be first at times, find each address once. They find no
// more addresses than requested.
func TestTwoOwnersAtOnce(t *testing.T) {
	files := map[string]string{"a.test/robots.txt": "Sitemap: /i.xml"}
	var names []string
	for n := range 6 {
		name := fmt.Sprintf("/%d.xml", n)
		var urls []string
		for i := range 1_500 {
			urls = append(urls, fmt.Sprintf("/%d", 700*n+i))
		}
		names, files["a.test"+name] = append(names, name), urlset(urls...)
	}
	files["a.test/i.xml"] = index(names...)
	for _, most := range []uint32{500_000, 2_345} {
		r := newRig(t, files)
		id := r.ask("http://a.test/", most)
		var owners sync.WaitGroup
		for range 3 {
			owners.Go(func() {
				kind := r.kind(func(string) {})
				for range 100 {
					outcome, err := kind.Step(t.Context(), work.Item{ID: id, Kind: work.Harvest})
					if err != nil {
						t.Error(err)
						return
					}
					if outcome.End == work.Ended {
						return
					}
				}
				t.Error("it does not end")
			})
		}
		owners.Wait()
		found := r.found(id)
		slices.Sort(found)
		want := min(most, 700*5+1_500)
		if once := slices.Compact(slices.Clone(found)); len(once) != len(found) ||
			len(found) != int(want) || r.client.View().Harvest(id).Count != want {
			t.Errorf("%d found, %d different ones, %d told; want %d", len(found), len(once),
				r.client.View().Harvest(id).Count, want)
		}
	}
}

// A harvest is bounded in levels, sitemaps and addresses, and ends loops of sitemaps.
func TestBounds(t *testing.T) {
	files := map[string]string{"a.test/robots.txt": "Sitemap: /0.xml"}
	for n := range maxLevels + 3 {
		files[fmt.Sprintf("a.test/%d.xml", n)] = index(fmt.Sprintf("/%d.xml", n+1), "/0.xml",
			fmt.Sprintf("/u%d.xml", n))
		files[fmt.Sprintf("a.test/u%d.xml", n)] = urlset(fmt.Sprintf("/%d", n))
	}
	r := newRig(t, files)
	h := r.finish(r.ask("http://a.test/", 500_000))
	if h.Count != maxLevels-1 {
		t.Errorf("%d addresses", h.Count)
	}
	r = newRig(t, map[string]string{"a.test/sitemap.xml": urlset("/1", "/2", "/3")})
	id := r.ask("http://a.test/", 2)
	if h := r.finish(id); h.Count != 2 || len(r.found(id)) != 2 || len(r.asked) != 2 {
		t.Errorf("%d addresses, asked for %q", h.Count, r.asked)
	}
	var many []string
	for n := range maxFiles + 10 {
		many = append(many, fmt.Sprintf("/%d.xml", n))
	}
	r = newRig(t, map[string]string{"a.test/sitemap.xml": index(many...)})
	id = r.ask("http://a.test/", 9)
	r.step(id, 0)
	j, err := openJournal(t.Context(), &Config{Store: r.store}, r.client.View().Harvest(id))
	if err != nil || len(j.files) != maxFiles {
		t.Errorf("%d sitemaps: %v", len(j.files), err)
	}
	r.clock.Advance(longest)
	if h := r.finish(id); h.State != client.HarvestDone {
		t.Errorf("%+v", h)
	}
}

// panics is a sender that panics on use.
type panics struct{}

// Do implements Sender.
func (panics) Do(context.Context, *egress.Request) (*egress.Response, error) { panic("dies") }

// A harvest without progress ends with what it has. One that nobody wants ends at once.
func TestGivenUp(t *testing.T) {
	r := newRig(t, nil)
	id := r.ask("http://a.test/", 9)
	item := work.Item{ID: id, Kind: work.Harvest, Failures: tries}
	kind := Kind(Config{Client: r.client, Store: r.store, Sender: panics{}, Clock: r.clock,
		HostRate: 1, IDs: r.ids})
	if outcome, err := kind.Step(t.Context(), item); err != nil || outcome.End != work.Ended {
		t.Fatal(outcome, err)
	}
	if h := r.client.View().Harvest(id); h.State != client.HarvestFailed ||
		h.Code != string(fault.Internal) {
		t.Errorf("%+v", h)
	}
	id = r.ask("http://a.test/", 9)
	r.client.Short(t, "row store")
	if end, _ := r.step(id, 0); end != work.Rested {
		t.Errorf("%v while there is no space", end)
	}
	r.client.Short(t, "")
	r.asked = nil
	deletion := client.Deletion{Customer: "alice", Operation: client.OpDeleteScraper,
		Target: r.scraper}
	r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
	r.client.Must(t, client.DeleteScraper{Deletion: deletion, Token: "t"})
	if end, _ := r.step(id, 0); end != work.Ended || len(r.asked) > 0 {
		t.Errorf("%v, asked for %q", end, r.asked)
	}
}

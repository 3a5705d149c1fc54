package contacts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

var checkedAt = time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("", 3600))

// row is a row that the extraction wrote.
type row struct {
	Website   string `json:"website"`
	Email     string `json:"email"`
	All       string `json:"emails_all"`
	Source    string `json:"email_source_url"`
	Match     string `json:"domain_match"`
	Status    Status `json:"status"`
	CheckedAt string `json:"checked_at"`
}

// visit treats a site as a fetcher does, and counts the fetches.
func visit(t *testing.T, w website) (got row, free bool, fetches int) {
	t.Helper()
	maker, faults := Compile(model.Recipe{Endpoint: model.WebsiteContacts})
	if faults != nil {
		t.Fatal(faults)
	}
	var out rows.Writer
	out.Reset()
	first := page.Page{URL: w.url, Asked: w.url, At: checkedAt}
	if w.pages[w.url].code == fault.PageDailyLimit {
		first.Code = fault.PageDailyLimit
	}
	done, err := maker.Unfetched(first, &out)
	if err != nil {
		t.Fatal(err)
	}
	free = true
	var pages []page.Page
	for url := w.url; !done; {
		pages = append(pages, w.fetch(url))
		fetches++
		out.Reset()
		more, err := maker.Read(pages, &out)
		if err != nil {
			t.Fatal(err)
		}
		if done, free = more.Ask == nil, more.Free; !done {
			last := &pages[len(pages)-1]
			last.Kept, last.Body = more.Ask.Keep, nil
			url = more.Ask.URL
		}
	}
	if len(out.Rows()) != 1 {
		t.Fatalf("%s: %d rows", w.name, len(out.Rows()))
	}
	if err := json.Unmarshal(out.Rows()[0], &got); err != nil {
		t.Fatal(err)
	}
	return got, free, fetches
}

func (w website) fetch(url string) page.Page {
	p := page.Page{URL: url, Asked: url, At: checkedAt}
	r, known := w.pages[url]
	switch {
	case !known:
		p.Code, p.Missing = fault.PageStatus, true
	case r.code != "":
		p.Code = r.code
	default:
		p.ContentType, p.Body = r.media, []byte(r.body)
		if r.final != "" {
			p.URL = r.final
		}
	}
	return p
}

// score counts addresses and rows.
type score struct {
	right, wrong, missed  int // addresses
	sites, statuses, rows int // rows; statuses and rows count the right ones
}

func (s *score) add(t *testing.T, w website, got row, free bool) {
	var all []string
	if got.All != "" {
		all = strings.Split(got.All, "; ")
	}
	for _, a := range all {
		if slices.Contains(w.want.emails, a) {
			s.right++
		} else {
			s.wrong++
		}
	}
	for _, a := range w.want.emails {
		if !slices.Contains(all, a) {
			s.missed++
		}
	}
	s.sites++
	if got.Status == w.want.status {
		s.statuses++
	}
	want := row{Website: w.url, All: strings.Join(w.want.emails, "; "), Source: w.want.source,
		Match: w.want.match, Status: w.want.status,
		CheckedAt: "2026-03-01T11:30:00Z"}
	if len(w.want.emails) > 0 {
		want.Email = w.want.emails[0]
	}
	if got == want && free == (want.Status != Found && want.Status != None) {
		s.rows++
		return
	}
	t.Logf("%s\n got  %+v, free %v\n want %+v", w.name, got, free, want)
}

func (s *score) precision() float64 { return float64(s.right) / float64(max(s.right+s.wrong, 1)) }
func (s *score) recall() float64    { return float64(s.right) / float64(max(s.right+s.missed, 1)) }

// TestCorpus compares the extraction with the truth of synthetic sites.
func TestCorpus(t *testing.T) {
	const leastSites = 150
	const leastPrecision, leastRecall, leastStatuses = 0.99, 0.99, 0.99
	for _, seed := range []uint64{1, 2, 3} {
		var s score
		sites := newCorpus(seed)
		for _, w := range sites {
			got, free, fetches := visit(t, w)
			if fetches > maxFetches {
				t.Errorf("%s: %d fetches", w.name, fetches)
			}
			s.add(t, w, got, free)
		}
		t.Logf("seed %d: %d sites, %d addresses: precision %.4f, recall %.4f; statuses %d, "+
			"whole rows %d", seed, s.sites,
			s.right+s.missed, s.precision(), s.recall(), s.statuses, s.rows)
		if s.sites < leastSites || s.precision() < leastPrecision || s.recall() < leastRecall ||
			float64(s.statuses) < leastStatuses*float64(s.sites) {
			t.Errorf("seed %d is below the thresholds", seed)
		}
	}
}

// Profiles and sites over a limit are not fetched, and no site takes more fetches than needed.
func TestFetches(t *testing.T) {
	want := map[string]int{"profile": 0, "home-daily_limit_reached": 0, "footer-and-contact": 2,
		"imprint-after-form": 3, "form-only": 3,
		"home-only": 1, "contact-text": 2, "parked-sale": 1, "challenge-cloudflare": 1,
		"home-dns_failed": 1, "refresh": 3}
	for _, w := range newCorpus(1) {
		for shape, fetches := range want {
			if !strings.HasSuffix(w.name, "-"+shape) {
				continue
			}
			if _, _, got := visit(t, w); got != fetches {
				t.Errorf("%s: %d fetches, want %d", w.name, got, fetches)
			}
		}
	}
}

// FuzzRead: whatever a site sends, there is one complete row, and keeping findings instead of
// bodies does not change it.
func FuzzRead(f *testing.F) {
	for _, w := range newCorpus(1)[:60] {
		f.Add([]byte(w.pages[w.url].body), []byte(w.pages[w.want.source].body))
	}
	f.Fuzz(func(t *testing.T, home, contact []byte) {
		w := website{name: "fuzz", url: "https://www.firma-x.de/", pages: map[string]response{}}
		w.pages[w.url] = raw(string(home))
		kept, free, fetches := visit(t, w)
		if fetches > maxFetches || free == (kept.Status == Found || kept.Status == None) {
			t.Errorf("%+v, free %v after %d fetches", kept, free, fetches)
		}
		if (kept.Status == Found) != (kept.Email != "") ||
			(kept.Match != "") != (kept.Email != "") {
			t.Errorf("%+v", kept)
		}
		for email := range strings.SplitSeq(kept.All, "; ") {
			if kept.All != "" &&
				(strings.Count(email, "@") != 1 || strings.ContainsAny(email, " ;\"<>,\n") ||
					strings.ToLower(email) != email) {
				t.Errorf("%q is no address", email)
			}
		}
		pages := []page.Page{w.fetch(w.url),
			{URL: w.url + "kontakt", Asked: w.url + "kontakt", ContentType: "text/html",
				Body: contact, At: checkedAt},
			{URL: w.url + "impressum", Asked: w.url + "impressum", Code: fault.PageTimeout,
				At: checkedAt}}
		var out rows.Writer
		if _, err := read(pages, &out); err != nil || len(out.Rows()) > 1 {
			t.Errorf("%d rows, %v", len(out.Rows()), err)
		}
	})
}

// BenchmarkReadPage reads a shop's page with a footer that credits an agency.
func BenchmarkReadPage(b *testing.B) {
	body, err := os.ReadFile("../../../bench/page/product-page.html")
	if err != nil {
		b.Fatal(err)
	}
	footer := "<footer><p>Kontakt: info (at) shop.example, Tel. 030 123456</p>" +
		strings.Repeat(`<p><a href="https://www.shop.example/p">More at the shop</a> and (more) <a href="https://other.example/">there</a></p>`, 20) + "</footer>"
	p := page.Page{URL: "http://shop.example/", ContentType: "text/html",
		Body: append(body, footer...)}
	for b.Loop() {
		readPage(p, []string{"shop.example"})
	}
}

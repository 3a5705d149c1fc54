package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// ContactPrice is the price of a charged website, in micros.
const ContactPrice = 2 * PlainPrice

// site is a website of the contacts scenarios.
type site struct {
	name  string
	pages map[string]string // by path
	want  contact
}

// contact is the required content of a row.
type contact struct{ status, email, match string }

func (c contact) charged() bool {
	return c.status == "EMAIL_FOUND" ||
		c.status == "NO_EMAIL_PUBLISHED"
}

const prose = "<p>We have baked bread and cakes in the old town since 1950, and we still do " +
	"every morning.</p>"

func page(content string) string {
	return "<html><body>" + strings.Repeat(prose, 8) +
		`<a href="/contact">Contact</a> <a href="/imprint">Imprint</a>` + content + "</body></html>"
}

// sites are websites with every status that a test's web can produce; fully is how many more have
// addresses.
func sites(fully int) []site {
	list := []site{
		{"broken", nil, contact{}}, // only requested by LaunchContacts
		{"text", map[string]string{"/": page(""), "/contact": page("Mail: info@text.example")},
			contact{"EMAIL_FOUND", "info@text.example", "yes"}},
		{"imprint", map[string]string{"/": page(""), "/contact": page(""),
			"/imprint": page("Mail: us@gmail.com")}, contact{"EMAIL_FOUND", "us@gmail.com", "no"}},
		{"home", map[string]string{"/": page("Mail: a@home.example"), "/contact": page("")},
			contact{"EMAIL_FOUND", "a@home.example", "yes"}},
		{"none", map[string]string{"/": page(""), "/contact": page(""), "/imprint": page("")},
			contact{status: "NO_EMAIL_PUBLISHED"}},
		{"guarded", map[string]string{"/": page(""),
			"/contact": page(`<a class="__cf_email__" data-cfemail="a1b2">[email&#160;protected]</a>`), "/imprint": page("")},
			contact{status: "EMAIL_NOT_EXTRACTABLE"}},
		{"parked", map[string]string{"/": "<html><body>This domain is for sale</body></html>"},
			contact{status: "PAGE_NOT_READABLE"}},
		{"shell",
			map[string]string{"/": `<html><body><div id="root"></div><script src="/a.js"></script></body></html>`}, contact{status: "PAGE_NOT_READABLE"}},
	}
	for n := range fully {
		name := fmt.Sprintf("bakery-%03d", n)
		email := "info@" + name + ".example"
		list = append(list, site{name,
			map[string]string{"/": page(""), "/contact": page(""),
				"/imprint": page("Mail: " + email)},
			contact{"EMAIL_FOUND", email, "yes"}})
	}
	return list
}

// homeQueries make further addresses of one website.
var homeQueries = []string{"?a", "?b", "?c"}

// ContactsWeb is the web of these websites, and the required rows by address. Other addresses of
// the web break their connections.
func ContactsWeb(fully int, latency time.Duration) (synthweb.Config, map[string]contact) {
	config := synthweb.Config{PagesPerHost: 1, Texts: map[string]string{}, MinLatency: latency,
		MaxLatency: latency,
		Mix:        synthweb.Mix{{Class: synthweb.Reset, Weight: 1}}}
	want := map[string]contact{}
	for _, s := range sites(fully) {
		config.Names = append(config.Names, s.name)
		for path, text := range s.pages {
			config.Texts[s.name+".example"+path] = text
		}
		if s.want.status != "" {
			want["http://"+s.name+".example/"] = s.want
		}
	}
	for _, query := range homeQueries {
		config.Texts["home.example/"+query] = config.Texts["home.example/"]
	}
	return config, want
}

// Contacts is a run of website contacts and its required result.
type Contacts struct {
	Who     Client // with a key that may run it
	Want    map[string]contact
	Limited map[string]bool // domains listed with one address too many
	Run     Launched
}

// LaunchContacts launches a customer's run of the websites. It includes one domain more often than
// a day allows, and addresses that are not fetched at all.
func LaunchContacts(t *testing.T, who Client, web *synthweb.Web,
	want map[string]contact) *Contacts {
	t.Helper()
	SameDay(t)
	c := &Contacts{Want: want, Limited: map[string]bool{}}
	c.Who = Must(who.MintKey(t.Context(), "contacts", string(model.ScopeLLMFull)))(t)
	for address := range web.URLs(1) { // the first site, whose connection is reset
		want[address] = contact{status: "SITE_UNREACHABLE"}
	}
	want["https://www.facebook.com/a.bakery"] = contact{status: "SOCIAL_PROFILE_ONLY"}
	for n := range 4 { // more than four of one domain, but none is read
		want[fmt.Sprintf("https://www.instagram.com/bakery%d", n)] = contact{
			status: "SOCIAL_PROFILE_ONLY"}
	}
	urls := make([]string, 0, len(want)+3)
	for address := range want {
		urls = append(urls, address)
	}
	slices.Sort(urls)
	for _, query := range homeQueries { // with the bare one, four of one domain
		urls = append(urls, "http://home.example/"+query)
	}
	c.Limited["home.example"] = true
	group := Must(c.Who.PutGroup(t.Context(), "contacts "+NewKey()))(t)
	c.Run = Must(c.Who.Contacts(t.Context(), group, "contacts", urls))(t)
	if c.Run.LinksQueued != len(urls) {
		t.Fatalf("launch of %d websites answers %+v", len(urls), c.Run)
	}
	return c
}

// SameDay waits for the next day (UTC) if the current one ends within two minutes, during the test.
func SameDay(t *testing.T) {
	t.Helper()
	now := time.Now().UTC()
	left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	if left > 2*time.Minute {
		return
	}
	select {
	case <-time.After(left + time.Second): // the clock may be set back a little
	case <-t.Context().Done():
	}
}

// Check compares an ended run with the truth: each website has one row, and is charged by its
// status.
func (c *Contacts) Check(t *testing.T, reported recount.Reported) {
	t.Helper()
	seen := map[string]bool{}
	var charged int64
	ofHome := map[string]int{}
	for _, row := range reported.Rows {
		website, _ := row["website"].(string)
		got := contact{fmt.Sprint(row["status"]), fmt.Sprint(row["email"]),
			fmt.Sprint(row["domain_match"])}
		if seen[website] {
			t.Errorf("%s has two rows", website)
		}
		seen[website] = true
		if got.charged() {
			charged++
		}
		if strings.HasPrefix(website, "http://home.example/") {
			ofHome[got.status]++
		} else if got != c.Want[website] {
			t.Errorf("%s is %+v, want %+v", website, got, c.Want[website])
		}
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(row["checked_at"])); err != nil ||
			time.Since(at).Abs() > time.Hour {
			t.Errorf("%s was checked at %v", website, row["checked_at"])
		}
	}
	if n := len(reported.Rows); n != c.Run.LinksQueued || len(reported.Errors) > 0 {
		t.Errorf("%d rows of %d websites, errors %v", n, c.Run.LinksQueued, reported.Errors)
	}
	if ofHome["DAILY_LIMIT_REACHED"] != 1 {
		t.Errorf("four of one domain end as %v", ofHome)
	}
	entry := reported.Entry
	if entry.AmountMicros != -charged*ContactPrice || entry.FreeRequestsDelta != 0 ||
		len(entry.Lines) != 1 ||
		entry.Lines[0].Pages != 2*charged || entry.Lines[0].FreePages != 0 ||
		entry.Lines[0].UnitPriceMicros != PlainPrice {
		t.Errorf("%d websites are charged, the entry is %+v", charged, entry)
	}
	if reported.Job.State != "COMPLETED" || reported.Job.SuccessLinks != int64(c.Run.LinksQueued) {
		t.Errorf("job %+v", reported.Job)
	}
}

// CheckRequests requires at most three pages per website, except home's, whose three reads count
// separately. If nothing died, each page was requested once.
func (c *Contacts) CheckRequests(t *testing.T, web *synthweb.Web, most int) {
	t.Helper()
	pages := map[string]int{}
	for r := range web.Requests() {
		if !r.Robots {
			pages[r.Host]++
		}
	}
	for host, n := range pages {
		allowed := 3 * most
		if c.Limited[host] {
			allowed *= 3
		}
		if n > allowed {
			t.Errorf("%s was asked for %d pages, at most %d may be", host, n, allowed)
		}
	}
}

func testWebsiteContacts(t *testing.T, on Platform) {
	config, want := ContactsWeb(60, 0)
	web := on.Web(t, config)
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	c := LaunchContacts(t, s.Client, web, want)
	reported := Must(s.Report(Within(t, Patience), c.Run))(t)
	c.Check(t, reported)
	c.CheckRequests(t, web, 1)
	CheckWallet(t, s.Client)
	s.CheckBooks()
	if wallet := Must(s.Wallet(t.Context()))(t); wallet.FreeRequestsRemaining != FreeGrant {
		t.Errorf("%d free requests are left", wallet.FreeRequestsRemaining)
	}
	_, err := c.Who.Contacts(t.Context(), reported.Job.GroupID, "contacts",
		[]string{"http://text.example/"})
	if CodeOf(err) != "NAME_TAKEN" {
		t.Errorf("the same name again: %v", err)
	}
	reported = s.WithRecords(reported)
	if len(reported.Records) != c.Run.LinksQueued {
		t.Errorf("%d page records of %d websites", len(reported.Records), c.Run.LinksQueued)
	}
}

func testWebsiteContactsWithoutTopUp(t *testing.T, on Platform) {
	config, _ := ContactsWeb(1, 0)
	web := on.Web(t, config)
	s := NewService(t, on, web, Fast()...)
	who := Must(s.MintKey(t.Context(), "contacts", string(model.ScopeLLMFull)))(t)
	group := Must(who.PutGroup(t.Context(), "contacts"))(t)
	run := Must(who.Contacts(t.Context(), group, "contacts", []string{"http://text.example/"}))(t)
	if run.Status != "FAILED" || !strings.Contains(run.Message, "not part of the free requests") {
		t.Errorf("the launch answers %+v", run)
	}
	reported := Must(s.Report(Within(t, Patience), run))(t)
	if reported.Job.State != "FAILED" ||
		!strings.Contains(reported.Job.ErrorMessage, "not part of the free requests") ||
		len(reported.Rows) > 0 || reported.Entry.AmountMicros != 0 ||
		reported.Entry.FreeRequestsDelta != 0 {
		t.Errorf("%+v", reported)
	}
	for r := range web.Requests() {
		t.Errorf("%s%s was asked for", r.Host, r.Path)
	}
	CheckWallet(t, s.Client)
}

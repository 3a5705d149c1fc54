// Package contacts owns the extraction of website contacts (specification 4.14): which e-mail
// addresses a business publishes on its own site. It reads the home page, and up to two
// contact-type pages that it links to. It guesses nothing, answers nothing protected, runs no
// script, and knows no daily limits.
//
// What a person reads on the page is published, whatever its spelling: info (at) firma dot de,
// full-width letters, a picture of an at sign. So is what the page was made of and says in plain
// letters. That is what a button copies, JSON-LD, and the data of a framework where it is JSON.
// What has to be computed first is protected. It is made by a script, encoded or enciphered, put
// together or turned round by a style sheet, or drawn. Style sheets of the page itself also say
// what nobody sees; those in files are not fetched. An address whose letters they may hide is in
// doubt, and answered as not extractable. A block that is hidden counts, since scripts may show it,
// unless it is nothing but an address.
package contacts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Status is what became of a website.
type Status string

// The statuses of the specification. The first two are charged.
const (
	Found        Status = "EMAIL_FOUND"
	None         Status = "NO_EMAIL_PUBLISHED"
	Protected    Status = "EMAIL_NOT_EXTRACTABLE"
	NotReadable  Status = "PAGE_NOT_READABLE"
	Unreachable  Status = "SITE_UNREACHABLE"
	Social       Status = "SOCIAL_PROFILE_ONLY"
	LimitReached Status = "DAILY_LIMIT_REACHED"
)

// Bounds of a website.
const (
	maxFetches   = 3                // pages
	maxTime      = 15 * time.Second // from the first request's start
	maxAddresses = 100              // of a row
)

// Compile makes the extraction. It has columns of its own and reads a website as one page.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	var faults fault.List
	for _, member := range []struct {
		field string
		given bool
	}{
		{"itemsConfig", len(r.Fields) > 0},
		{"sourceConfig.pagination", r.Pagination.MaxPages() > 1},
		{"sourceConfig.curl", r.Curl != ""}, {"schema", len(r.Schema) > 0},
	} {
		if member.given {
			faults = append(faults,
				fault.Invalid(fault.SchemaValidation, member.field,
					"website contacts have none; leave it out"))
		}
	}
	if len(faults) > 0 {
		return rows.Maker{}, faults
	}
	return rows.Maker{Read: read, Unfetched: unfetched, Failures: true, Fetches: maxFetches,
		Within: maxTime}, nil
}

// unfetched makes the row of a website that nothing is fetched for.
func unfetched(p page.Page, out *rows.Writer) (bool, error) {
	var status Status
	switch {
	case isProfile(p.Asked): // it counts towards no limit
		status = Social
	case p.Code == fault.PageDailyLimit:
		status = LimitReached
	default:
		return false, nil
	}
	return true, answer{website: p.Asked, status: status, at: p.At}.write(out)
}

// read makes the row of a website, or asks for its next page.
func read(pages []page.Page, out *rows.Writer) (rows.More, error) {
	listed := pages[0]
	s := &site{listed: listed, own: []string{domainOfURL(listed.Asked), domainOfURL(listed.URL)}}
	for _, p := range pages {
		f, err := s.learn(p)
		if err != nil {
			return rows.More{}, err
		}
		s.pages = append(s.pages, f)
	}
	if url := s.next(); url != "" {
		keep, err := json.Marshal(s.pages[len(s.pages)-1])
		if err != nil {
			return rows.More{}, fmt.Errorf("what to keep of %s: %w", pages[len(pages)-1].URL, err)
		}
		return rows.More{Ask: &page.Ask{URL: url, Keep: keep}}, nil
	}
	a := s.conclude()
	return rows.More{Free: a.status != Found && a.status != None}, a.write(out)
}

// site is what is known of a website.
type site struct {
	listed page.Page
	own    []string   // its registrable domains: as listed, and where the home page was found
	pages  []findings // in the order of the pages
}

// findings are what matters of a page. They are kept in place of its body.
type findings struct {
	URL       string     `json:"url"`
	Failed    fault.Code `json:"failed,omitempty"` // why it could not be fetched
	Verdict   verdict    `json:"verdict,omitempty"`
	Addresses []address  `json:"addresses,omitempty"` // in the order of the page, each once
	Protected bool       `json:"protected,omitempty"` // it has an address behind a protection
	// to contact-type pages, at most 2, best first
	Links   []string `json:"links,omitempty"`
	Refresh string   `json:"refresh,omitempty"` // where it leads at once
	Topics  role     `json:"topics,omitempty"`  // roles that are the site's own trade
	Makers  []string `json:"makers,omitempty"`  // domains of those who made the site
}

// address is a published address.
type address struct {
	Email string `json:"email"`
	// Roles say whose address it is by its surroundings, 0 for the site's own.
	Roles role `json:"roles,omitempty"`
}

// learn reads a page, unless an earlier call did.
func (s *site) learn(p page.Page) (findings, error) {
	f := findings{URL: p.URL}
	switch {
	case len(p.Kept) > 0:
		if err := json.Unmarshal(p.Kept, &f); err != nil {
			return f, fault.Wrap(fault.PageUnparsable, err,
				"what was kept of the page cannot be read")
		}
	case p.Code != "":
		f.Failed = p.Code
	case p.CheckHTML() != nil:
		f.Failed = fault.PageNotHTML
	case isProfile(p.URL):
		f.Verdict = profile
	case tree.Check(p.Body) != nil:
		f.Failed = fault.PageTooLarge
	default:
		f = readPage(p, s.own)
	}
	return f, nil
}

// home is the home page and where it stands: a page that leads on at once is not it.
func (s *site) home() (findings, int) {
	if s.pages[0].Refresh != "" && len(s.pages) > 1 {
		return s.pages[1], 1
	}
	return s.pages[0], 0
}

// next is the page to read now, "" when enough is known.
func (s *site) next() string {
	home, at := s.home()
	read := len(s.pages) - 1 - at
	switch {
	case at == 0 && read == 0 && home.Refresh != "":
		return home.Refresh
	case home.Failed != "" || home.Verdict.final() || len(s.pages) >= maxFetches:
		return ""
	case read < len(home.Links) && (read == 0 || len(s.accepted()) == 0):
		return home.Links[read]
	}
	return ""
}

// place is an accepted address and the page that it was found on.
type place struct {
	email, url string
	own        bool
}

// accepted are the business's addresses, best first: own domain first, contact pages before the
// home page.
func (s *site) accepted() []place {
	home, at := s.home()
	makers := slices.Clone(home.Makers)
	for _, f := range s.pages[at:] {
		makers = append(makers, f.Makers...)
	}
	var list []place
	seen := map[string]bool{}
	take := func(f findings) {
		for _, a := range f.Addresses {
			domain := domainOfEmail(a.Email)
			own := slices.Contains(s.own, domain)
			if seen[a.Email] || !own &&
				(a.Roles&^home.Topics != 0 || slices.Contains(makers, domain)) {
				continue
			}
			seen[a.Email] = true
			list = append(list, place{a.Email, f.URL, own})
		}
	}
	for _, f := range s.pages[at+1:] {
		take(f)
	}
	take(home)
	slices.SortStableFunc(list, func(a, b place) int {
		switch {
		case a.own && !b.own:
			return -1
		case b.own && !a.own:
			return 1
		}
		return 0
	})
	return list[:min(len(list), maxAddresses)]
}

// conclude makes the answer of what was read.
func (s *site) conclude() answer {
	home, at := s.home()
	a := answer{website: s.listed.Asked, at: s.listed.At}
	switch {
	case home.Failed != "":
		a.status = statusOf(home.Failed)
		if at > 0 {
			a.status = NotReadable // the site did answer
		}
		return a
	case home.Verdict == profile:
		a.status = Social
		return a
	case home.Verdict.final():
		a.status = NotReadable
		return a
	}
	if found := s.accepted(); len(found) > 0 {
		a.status, a.found = Found, found
		a.match = s.match(found[0], home.URL)
		return a
	}
	a.status = None
	if home.Verdict != readable || s.missedContacts(at) {
		a.status = NotReadable
	}
	for _, f := range s.pages[at:] {
		if f.Protected {
			a.status = Protected
		}
	}
	return a
}

// missedContacts says that there are contact-type pages, and none of them could be read.
func (s *site) missedContacts(at int) bool {
	contacts := s.pages[at+1:]
	for _, f := range contacts {
		// A page that is not there any more hides nothing.
		if f.Failed == fault.PageStatus || f.Failed == "" && f.Verdict == readable {
			return false
		}
	}
	return len(contacts) > 0
}

// match is the column domain_match.
func (s *site) match(best place, home string) string {
	listed := domainOfURL(s.listed.Asked)
	switch {
	case domainOfEmail(best.email) == listed:
		return "yes"
	case domainOfURL(home) != listed:
		return "unknown"
	}
	return "no"
}

// statusOf is the status of a home page that could not be fetched.
func statusOf(code fault.Code) Status {
	switch code {
	case fault.PageDNS, fault.PageConnect, fault.PageTLS, fault.PageTimeout, fault.PageProtocol,
		fault.PageAddressForbidden,
		fault.PageInvalidURL:
		return Unreachable
	}
	return NotReadable
}

// answer is the row.
type answer struct {
	website string
	found   []place
	match   string
	status  Status
	at      time.Time
}

func (a answer) write(out *rows.Writer) error {
	email, source := "", ""
	all := make([]string, len(a.found))
	for i, p := range a.found {
		all[i] = p.email
	}
	if len(a.found) > 0 {
		email, source = a.found[0].email, a.found[0].url
	}
	row := out.BeginRow()
	row.AddText("website", a.website)
	row.AddText("email", email)
	row.AddText("emails_all", strings.Join(all, "; "))
	row.AddText("email_source_url", source)
	row.AddText("domain_match", a.match)
	row.AddText("status", string(a.status))
	row.AddText("checked_at", a.at.UTC().Format(time.RFC3339))
	return row.End()
}

// Package contacts owns the extraction of website contacts (specification 4.14): which e-mail
// addresses a business publishes on its own site. It reads the home page, and up to two
// contact-type pages that it links to. It guesses nothing, answers nothing protected, runs no
// script, and knows no daily limits.
//
// An address is published if a person can read it on the page, whatever its spelling. Examples are
// info (at) firma dot de, full-width letters, and a picture of an at sign. It is also published if
// the page's source has it in plain letters: text that a button copies, JSON-LD, or a framework's
// JSON data. It is protected if it must be computed first. Such an address is made by a script,
// encoded or enciphered, assembled or reversed by a style sheet, or drawn. The page's own style
// sheets also tell which text is hidden; style sheet files are not fetched. If they may hide
// letters of an address, it is in doubt and reported as not extractable. A hidden block counts,
// because scripts may show it, unless it is nothing but an address.
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

// Status is the outcome for a website.
type Status string

// The statuses of the specification. Only the first two are charged.
const (
	Found        Status = "EMAIL_FOUND"
	None         Status = "NO_EMAIL_PUBLISHED"
	Protected    Status = "EMAIL_NOT_EXTRACTABLE"
	NotReadable  Status = "PAGE_NOT_READABLE"
	Unreachable  Status = "SITE_UNREACHABLE"
	Social       Status = "SOCIAL_PROFILE_ONLY"
	LimitReached Status = "DAILY_LIMIT_REACHED"
)

// Bounds per website.
const (
	maxFetches   = 3                // pages
	maxTime      = 15 * time.Second // from the start of the first request
	maxAddresses = 100              // per row
)

// Compile returns the extraction. It has fixed columns and treats a website as one page.
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

// unfetched makes the row of a website that needs no fetch.
func unfetched(p page.Page, out *rows.Writer) (bool, error) {
	var status Status
	switch {
	case isProfile(p.Asked): // exempt from any limit
		status = Social
	case p.Code == fault.PageDailyLimit:
		status = LimitReached
	default:
		return false, nil
	}
	return true, answer{website: p.Asked, status: status, at: p.At}.write(out)
}

// read makes a website's row, or asks for its next page.
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

// site is the knowledge about a website.
type site struct {
	listed page.Page
	own    []string   // registrable domains: as listed, and of the home page found
	pages  []findings // in the order of reading
}

// findings is what matters of a page. It is kept instead of the body.
type findings struct {
	URL       string      `json:"url"`
	Failed    fault.Code  `json:"failed,omitempty"`  // why the fetch failed
	Missing   bool        `json:"missing,omitempty"` // the site has no such page
	Verdict   verdict     `json:"verdict,omitempty"`
	Addresses []published `json:"addresses,omitempty"` // in the page's order, each once
	Protected bool        `json:"protected,omitempty"` // an address is protected
	// contact-type pages, at most 2, best first
	Links   []string `json:"links,omitempty"`
	Refresh string   `json:"refresh,omitempty"` // where it redirects at once
	Topics  role     `json:"topics,omitempty"`  // roles that are the site's own trade
	Makers  []string `json:"makers,omitempty"`  // domains of those who made the site
}

// published is an address that a page shows.
type published struct {
	Email string `json:"email"`
	// Roles say whose address it is, judging by its surroundings; 0 for the site's own.
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
		f.Failed, f.Missing = p.Code, p.Missing
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

// home returns the home page and its index. A page that redirects at once is not the home page.
func (s *site) home() (findings, int) {
	if s.pages[0].Refresh != "" && len(s.pages) > 1 {
		return s.pages[1], 1
	}
	return s.pages[0], 0
}

// next returns the page to read next, or "" when enough is known.
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

// place is an accepted address and the page on which it was found.
type place struct {
	email, url string
	own        bool
}

// accepted returns the business's addresses, best first: own domain first, then contact pages
// before the home page.
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

// conclude makes the answer from the pages read.
func (s *site) conclude() answer {
	home, at := s.home()
	a := answer{website: s.listed.Asked, at: s.listed.At}
	switch {
	case home.Failed != "":
		a.status = statusOf(home.Failed)
		if at > 0 {
			a.status = NotReadable // the site did respond
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
	if home.Verdict != readable || s.missedContacts() {
		a.status = NotReadable
	}
	for _, f := range s.pages[at:] {
		if f.Protected {
			a.status = Protected
		}
	}
	return a
}

// missedContacts says that none of the contact-type pages to which the site links could be read,
// although it has one. A missing page hides nothing; one that refuses or fails may.
func (s *site) missedContacts() bool {
	home, at := s.home()
	missing := 0
	for _, f := range s.pages[at+1:] {
		switch {
		case f.Missing:
			missing++
		case f.Failed == "" && f.Verdict == readable:
			return false
		}
	}
	return missing < len(home.Links)
}

// match returns the value of the column domain_match.
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

// statusOf returns the status for a home page that could not be fetched.
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

package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// MaxLinkText bounds address, title and curl of a site's link together, in bytes.
	MaxLinkText = 8 << 10
	// maxLinkLine bounds a line of JSON with such texts, even if every character is escaped.
	maxLinkLine = 8 * MaxLinkText
	// sitePart is how many bytes of text the row store gets at once, about. It has some copies of
	// them, and a connection to it may keep one.
	sitePart = 1 << 20
)

// SiteInput is a site as its caller gives it. Its links come as lines, parsed by Line.
type SiteInput struct {
	ID      ids.ID // zero: the scraper's own, or a new one
	Scraper ids.ID
	Name    string
	Links   io.Reader
	// Receive waits until the links have come; nil: they are already here.
	Receive func(ctx context.Context) error
	Line    func(line []byte) (rowstore.SiteLink, error)
	// Items says that the lines are items of a JSON array. Errors then name them as items.
	Items bool
}

// place names line number, counted from 1, in errors.
func (in *SiteInput) place(number int) string {
	if in.Items {
		return fmt.Sprintf("links[%d]", number-1)
	}
	return fmt.Sprintf("links, line %d", number)
}

// PutSite gives a scraper the links that its runs read. The earlier links stay until all new ones
// are stored, and one invalid link refuses all. Links equal in canonical form are stored once. A
// repeated call returns its original answer. Faults: scraper_not_found, not_found,
// type_not_runnable, LIST_TOO_LARGE, INVALID_URL, invalid_body, unknown_field, limit_reached,
// out_of_space and those of idempotency keys.
func (l *Launcher) PutSite(ctx context.Context, from *Caller, in *SiteInput) (client.Site, error) {
	if from.View.Cluster() != nil && from.View.ClusterVersion() < client.SitesSince {
		return client.Site{}, fault.New(fault.Unavailable,
			"the cluster is being upgraded: sites are there once all its nodes run the new version")
	}
	t := l.newIntake(from)
	t.site = true
	replay, err := client.Begin[client.PutSite](ctx, l.Client, t.claim(), t.call)
	if err != nil {
		return client.Site{}, err
	}
	if replay != nil {
		return *replay, nil
	}
	t.keepClaim(ctx)
	defer t.end(ctx)
	return t.putSite(ctx, in)
}

func (t *intake) putSite(ctx context.Context, in *SiteInput) (client.Site, error) {
	none := client.Site{}
	scraper, err := ownership.Scraper(t.from.View, t.from.Customer, in.Scraper, "scraperRef")
	if err != nil {
		return none, err
	}
	if scraper.ListRun || !readsAddresses(scraper.Spec.Type) {
		return none, fault.Invalid(fault.TypeNotRunnable, "scraperRef", "scrapers of lists, "+
			"searches and files have no site")
	}
	if in.Receive != nil {
		if err := in.Receive(ctx); err != nil {
			return none, err
		}
	}
	count, err := t.storeSite(ctx, in)
	if err != nil {
		return none, err
	}
	if count == 0 && !in.Items {
		return none, fault.Invalid(fault.InvalidRequest, "links",
			`the body has no link; only {"links": []} empties a site`)
	}
	if err := t.hold(ctx); err != nil {
		return none, err
	}
	put := client.PutSite{ID: in.ID, Named: !in.ID.IsZero(), Customer: t.call.Customer,
		Scraper: in.Scraper, Name: in.Name, Version: t.list, Links: count}
	if !put.Named {
		put.ID = t.IDs.New()
	}
	site, err := client.Do(ctx, t.Client, put, t.under())
	t.made = err == nil && site.Version == t.list
	t.maybe = uncertain(err)
	return site, err
}

// readsAddresses says whether runs of this type read addresses that they are given.
func readsAddresses(t model.ScraperType) bool {
	return t != model.SearchEngineSearch && t != model.File
}

// storeSite stores the links, all or none, and returns how many there are.
func (t *intake) storeSite(ctx context.Context, in *SiteInput) (uint32, error) {
	lines := bufio.NewScanner(in.Links)
	lines.Buffer(make([]byte, 0, maxLine), maxLinkLine)
	seen := newHashSet()
	part, bytesOfPart := make([]rowstore.SiteLink, 0, rowstore.MaxSitePart), 0
	write := func() error {
		t.stored = true
		if err := t.Store.PutSiteLinks(ctx, t.list, part); err != nil {
			return fmt.Errorf("take in a site: %w", err)
		}
		clear(part)
		part, bytesOfPart = part[:0], 0
		return nil
	}
	number := 1
	for ; lines.Scan() && lines.Err() == nil; number++ {
		if number > 2*client.MaxSiteLinks {
			return 0, tooManyLinks()
		}
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		link, err := in.Line(bytes.TrimSpace(line))
		place := in.place(number)
		if err != nil {
			return 0, refusedAddress(place, string(line), err)
		}
		if link.URL == "" {
			continue
		}
		canonical, err := t.canonical(link.URL)
		if err != nil {
			return 0, refusedAddress(place, link.URL, err)
		}
		text := len(link.URL) + len(link.Title) + len(link.Curl)
		if text > MaxLinkText {
			return 0, fault.Invalid(fault.InvalidRequest, place,
				"a link has at most %d bytes of text", MaxLinkText)
		}
		link.Hash = rowstore.LinkHash(canonical)
		link.Seq = uint32(seen.count)
		if !seen.add(link.Hash) {
			continue
		}
		if seen.count > client.MaxSiteLinks {
			return 0, tooManyLinks()
		}
		part, bytesOfPart = append(part, link), bytesOfPart+text
		if len(part) == rowstore.MaxSitePart || bytesOfPart >= sitePart {
			if err := write(); err != nil {
				return 0, err
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return 0, fault.Invalid(fault.InvalidRequest, in.place(number),
			"it has more than %d bytes", maxLinkLine)
	case err != nil:
		return 0, err
	}
	if err := write(); err != nil {
		return 0, err
	}
	if err := t.Store.FinishSite(ctx, t.list, uint32(seen.count)); err != nil {
		return 0, fmt.Errorf("take in a site: %w", err)
	}
	return uint32(seen.count), nil
}

func tooManyLinks() error {
	return fault.Invalid(fault.ListTooLarge, "links",
		"a site has at most %d links, and its body twice as many lines", client.MaxSiteLinks)
}

// URISiteLine reads a line of text/uri-list as a link.
func URISiteLine(line []byte) (rowstore.SiteLink, error) {
	url, err := URILine(line)
	return rowstore.SiteLink{URL: url}, err
}

// JSONSiteLine reads a line of application/x-ndjson as a link: {"url": "…", "title": "…"}, or an
// empty line. It ignores a member state, which answers of reads have.
func JSONSiteLine(line []byte) (link rowstore.SiteLink, err error) {
	if len(line) == 0 {
		return link, nil
	}
	malformed := fault.New(fault.InvalidBody,
		`The line is no JSON object like {"url": "https://…", "title": "…"}.`)
	if !utf8.Valid(line) {
		return link, errNotText
	}
	tokens := json.NewDecoder(bytes.NewReader(line))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		return link, malformed
	}
	into := map[string]*string{"url": &link.URL, "title": &link.Title, "curl": &link.Curl,
		"state": new(string)}
	for tokens.More() {
		name, err := tokens.Token()
		if err != nil {
			return link, malformed
		}
		text := into[name.(string)]
		if text == nil {
			return link, fault.New(fault.UnknownField, "There is no such member, or it comes "+
				"twice: %.100q.", name)
		}
		delete(into, name.(string))
		value, err := tokens.Token()
		if given, is := value.(string); is {
			*text = given
		} else if err != nil || value != nil {
			return link, malformed
		}
	}
	if end, err := tokens.Token(); err != nil || end != json.Delim('}') || link.URL == "" {
		return link, malformed
	}
	if _, err := tokens.Token(); !errors.Is(err, io.EOF) {
		return link, malformed
	}
	return link, nil
}

// SiteOf is the site that a run of a scraper reads; nil: it begins at the scraper's own address.
func SiteOf(v *client.View, scraper *client.Scraper) *client.Site {
	if scraper.ListRun || !readsAddresses(scraper.Spec.Type) {
		return nil
	}
	return v.SiteOf(scraper.ID)
}

var errNoLinks = fault.Invalid(fault.StartURLsUnreachable, "site",
	"the scraper's site has no links")

// How long a launch waits at most for the link states of the previous run, and how often it looks.
// States are written in the background, some seconds after a run's end. Without them, links that
// were just paid for would be read again.
const (
	statesTime = 10 * time.Second
	statesLook = 100 * time.Millisecond
)

// siteRun are the links of a site for a run, read once the states of the previous run are known.
func (l *Launcher) siteRun(site *client.Site) *siteAddresses {
	return &siteAddresses{store: l.Store, site: site, await: func(ctx context.Context) {
		until := l.Clock.Now().Add(statesTime)
		for l.Clock.Now().Before(until) {
			behind, err := l.History.StatesAreBehind(ctx, l.Client.View(), site.Scraper)
			if err != nil || !behind || !clock.Pause(ctx, l.Clock, statesLook) {
				return // the following read reports why
			}
		}
	}}
}

// siteAddresses are the links of a site: first the unvisited ones, then all others (decision 51).
// States may change meanwhile, so the second pass returns all; the list keeps each once.
type siteAddresses struct {
	store rowstore.Sites
	site  *client.Site
	// await waits for the states of the previous run; nil: no wait.
	await func(ctx context.Context)
	links []string // read but not yet returned
	from  uint32
	all   bool // the second pass
}

func (s *siteAddresses) place() string { return "a link of site " + s.site.ID.String() }

func (s *siteAddresses) rewind() { s.links, s.from, s.all = nil, 0, false }

func (s *siteAddresses) next(ctx context.Context) (listing, error) {
	if s.await != nil && s.from == 0 && !s.all {
		s.await(ctx)
	}
	for len(s.links) == 0 {
		if s.from >= s.site.Links {
			if s.all {
				return listing{}, io.EOF
			}
			s.from, s.all = 0, true
		}
		if err := s.read(ctx, linksAtOnce); err != nil {
			return listing{}, err
		}
	}
	url := s.links[0]
	s.links = s.links[1:]
	canonical, err := address.Canonical(url)
	return listing{url: url, canonical: canonical}, err
}

// first is the link that a run begins with. If the first maxSkimmed links are all visited, it takes
// the very first link. It does not advance next.
func (s *siteAddresses) first(ctx context.Context) (listing, error) {
	for _, all := range []bool{false, true} {
		skim := siteAddresses{store: s.store, site: s.site, all: all}
		if err := skim.read(ctx, maxSkimmed); err != nil {
			return listing{}, err
		}
		if len(skim.links) > 0 {
			return skim.next(ctx)
		}
	}
	return listing{}, io.EOF
}

// read reads up to most links of the site, and keeps those that this pass wants.
func (s *siteAddresses) read(ctx context.Context, most int) error {
	q := rowstore.SiteQuery{Version: s.site.Version, Site: s.site.ID, From: s.from, Limit: most}
	s.from = s.site.Links // unless links come
	s.links = nil
	links, err := s.store.SiteLinks(ctx, q)
	if errors.Is(err, rowstore.ErrListUnknown) {
		return fault.Invalid(fault.StartURLsUnreachable, "site",
			"the links of the scraper's site are no longer kept; send the site again")
	}
	if err != nil {
		return fmt.Errorf("site %s: %w", s.site.ID, err)
	}
	for _, link := range links {
		if s.from = link.Seq + 1; s.all || link.State != rowstore.LinkVisited {
			s.links = append(s.links, link.URL)
		}
	}
	return nil
}

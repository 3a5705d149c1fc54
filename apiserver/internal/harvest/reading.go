package harvest

import (
	"context"
	"errors"
	"path"
	"strings"

	"shoal.dev/shoal/apiserver/internal/sitemap"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/robots"
)

// maxVouching is how many other hosts are asked whether a sitemap speaks for them.
const maxVouching = 10

// reading reads some of the sitemaps of a harvest.
type reading struct {
	*harvests
	journal *journal
	own     string                   // the harvest's site
	rules   map[string]*robots.Rules // by origin; nil: they cannot be read
	// named are the sitemaps that a site's robots.txt names, for the sites asked so far.
	named map[string]map[string]bool
}

func newReading(k *harvests, j *journal) *reading {
	return &reading{harvests: k, journal: j, own: siteOf(j.harvest.URL),
		rules: map[string]*robots.Rules{}, named: map[string]map[string]bool{}}
}

// findFirst finds the sitemaps to begin with. That is the address itself if it is a sitemap. Else
// it is those that robots.txt names, or those at the usual places.
func (r *reading) findFirst(ctx context.Context) error {
	url := r.journal.harvest.URL
	if isSitemap(url) {
		if err := r.journal.addFile(ctx, file{URL: url, Level: 1}); err != nil {
			return err
		}
		return r.journal.write(ctx)
	}
	rules, err := r.rulesOf(ctx, url)
	if err != nil {
		return err
	}
	if rules != nil {
		for _, named := range rules.Sitemaps[:min(len(rules.Sitemaps), maxRoots)] {
			at, err := address.Resolve(url, named)
			if err != nil {
				continue
			}
			if err := r.journal.addFile(ctx, file{URL: at, Level: 1}); err != nil {
				return err
			}
		}
	}
	if len(r.journal.files) == 0 {
		for _, guess := range [...]string{"/sitemap.xml", "/sitemap_index.xml", "/sitemap.xml.gz"} {
			at, err := address.Resolve(url, guess)
			if err != nil {
				return err
			}
			if err := r.journal.addFile(ctx, file{URL: at, Level: 1, Guessed: true}); err != nil {
				return err
			}
		}
	}
	return r.journal.write(ctx)
}

// isSitemap says whether an address looks like that of a sitemap rather than a page.
func isSitemap(url string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, originOf(url)), "?")
	switch path.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz")) {
	case ".xml", ".rss", ".atom", ".rdf", ".txt":
		return true
	}
	return false
}

// rulesOf is the robots.txt that applies to an address; nil: it cannot be read.
func (r *reading) rulesOf(ctx context.Context, url string) (*robots.Rules, error) {
	origin := originOf(url)
	if known, ok := r.rules[origin]; ok {
		return known, nil
	}
	rules, _, err := r.web.rules(ctx, url)
	if err == nil {
		r.rules[origin] = rules
	}
	return rules, err
}

// originOf is a canonical address up to its path.
func originOf(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	return scheme + "://" + address.AuthorityOf(url)
}

// may waits until an address may be requested. Its errors: errForbidden, errAway, the context's.
func (r *reading) may(ctx context.Context, url string) error {
	if r.journal.harvest.IgnoreRobots {
		return r.web.await(ctx, url, 0)
	}
	rules, err := r.rulesOf(ctx, url)
	if err != nil {
		return err
	}
	if rules == nil {
		return errAway
	}
	if !rules.Allow(strings.TrimPrefix(url, originOf(url))) {
		return errForbidden
	}
	return r.web.await(ctx, url, rules.Delay)
}

// errAway says that a site's robots.txt cannot be read.
var errAway = errors.New("robots.txt cannot be read")

// read reads a sitemap, and records the result.
func (r *reading) read(ctx context.Context, f *file) error {
	at := *f // the journal's slice may move
	var failed error
	a, broken, err := r.web.file(ctx, at.URL, r.may, func(final string, e sitemap.Entry) bool {
		failed = r.addEntry(ctx, &at, final, e)
		return failed == nil && !r.journal.isFull()
	})
	if failed != nil {
		return failed
	}
	as := read
	switch {
	case errors.Is(err, errForbidden):
		as = missing
	case errors.Is(err, errAway):
		as = unreachable
	case err != nil:
		return err
	case a.err != nil && broken == nil:
		as = unreachable
	case a.status > 299 && a.retry && !at.Guessed:
		as = unreachable // whoever names it says that it is there
	case a.status > 299:
		as = missing
	case errors.Is(broken, sitemap.ErrNotSitemap) && at.Guessed:
		as = missing // an error page with status 200
	case broken != nil:
		as = malformed
	}
	if err := r.journal.add(ctx, &row{Read: at.URL, As: as}); err != nil {
		return err
	}
	return r.journal.write(ctx)
}

// addEntry adds an entry of a sitemap, if the sitemap may name it.
func (r *reading) addEntry(ctx context.Context, f *file, final string, e sitemap.Entry) error {
	url, err := address.Resolve(final, e.URL)
	if err != nil {
		return nil //nolint:nilerr // it is no address
	}
	if e.Sitemap {
		site := siteOf(url)
		if f.Level >= maxLevels || site != r.own && site != siteOf(f.URL) {
			return nil
		}
		return r.journal.addFile(ctx, file{URL: url, Level: f.Level + 1, Parent: f.URL})
	}
	if speaks, err := r.speaksFor(ctx, f, url); err != nil || !speaks {
		return err
	}
	image := ""
	if e.Image != "" {
		if image, err = address.Resolve(final, e.Image); err != nil {
			image = ""
		}
	}
	if image == "" {
		e.ImageTitle = ""
	}
	return r.journal.addURL(ctx, url, image, e.ImageTitle)
}

// speaksFor says whether a sitemap may name an address (sitemaps.org). It may if the address is on
// the site. It may, too, if the host's robots.txt names the sitemap or an ancestor of it.
func (r *reading) speaksFor(ctx context.Context, f *file, url string) (bool, error) {
	site := siteOf(url)
	if site == r.own {
		return true, nil
	}
	named, known := r.named[site]
	if !known {
		if len(r.named) >= maxVouching {
			return false, nil
		}
		named = map[string]bool{}
		rules, err := r.rulesOf(ctx, url)
		if err != nil {
			return false, err
		}
		if rules != nil {
			for _, text := range rules.Sitemaps {
				if at, err := address.Resolve(url, text); err == nil {
					named[at] = true
				}
			}
		}
		r.named[site] = named
	}
	for at := f.URL; at != ""; {
		if named[at] {
			return true, nil
		}
		parent, ok := r.journal.known[at]
		if !ok {
			return false, nil
		}
		at = r.journal.files[parent].Parent
	}
	return false, nil
}

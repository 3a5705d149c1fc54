package unit

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

// deliver makes the page of a unit whose pages are complete; last is the newest.
func (t *Turn) deliver(last extract.Page, result extract.Result) Step {
	t.units.metrics.parses[result.Parser].Inc()
	first := last
	if len(t.fetch.pages) > 0 {
		first = t.fetch.pages[0]
	}
	code := fault.Code("")
	if len(result.Rows) == 0 {
		if code = codeWithout(last, result); t.tryBrowser(first, code) {
			return Step{Again: true}
		}
	}
	t.units.metrics.rejected.Add(float64(result.Rejected))
	if code != "" && code != fault.PageNoRows {
		return t.fail(code)
	}
	if len(result.Rows) > 0 && len(t.fetch.tries) > 0 {
		t.learn()
	}
	got := content{final: first.URL, rows: result.Rows, link: result.Next, cursor: result.Cursor}
	var secret uint64
	if t.recipe.pager != nil {
		secret = t.view.Cluster().HashSecret
		got.body = xxh3.HashSeed(first.Body, secret)
	}
	if !result.Free {
		got.priceRow, got.quantity = t.charge.Of(t.fetch.by)
	}
	if t.recipe.pager == nil {
		return Step{Page: t.follow(secret, got)}
	}
	var p *model.Page
	panicked := t.units.config.Reader.Run(reading.Page{URL: first.URL,
		ContentType: first.ContentType,
		Body:        first.Body}, func() {
		p = t.follow(secret, got)
	})
	if panicked != nil {
		return t.fail(fault.PageUnparsable)
	}
	return Step{Page: p}
}

// codeWithout returns why a unit has no rows. Its pages have none, or none that fits the schema, or
// a language model was needed and gave no answer.
func codeWithout(last extract.Page, result extract.Result) fault.Code {
	switch {
	case last.Code == fault.PageModel || last.Code == fault.PageModelLimit:
		return last.Code
	case result.Rejected > 0:
		return fault.PageRowRejected
	}
	return fault.PageNoRows
}

// tryBrowser retries with a browser if scripts may make a page's rows. code says why there are
// none: a browser does not help when a model gave no answer.
func (t *Turn) tryBrowser(own extract.Page, code fault.Code) bool {
	if code == fault.PageModel || code == fault.PageModelLimit || t.unit.Page > 0 ||
		t.fetch.asked != "" ||
		len(t.fetch.tries) == 0 || !strings.Contains(own.ContentType, "html") ||
		!t.mayTry(0) {
		return false
	}
	if t.tiers[t.fetch.tier].Renders() || !t.fetch.climb(t.tiers, model.Rendering) {
		return false
	}
	t.fetch.tries[len(t.fetch.tries)-1].Code = string(code)
	t.fetch.pages = nil
	t.lease.ForgetBytes()
	t.repeat()
	return true
}

// content is what was read from a page.
type content struct {
	final  string // canonical
	rows   [][]byte
	link   string // to the next page
	cursor string // of the next page
	body   uint64 // hash of the body, for paginated scrapers

	priceRow string // "": nothing is charged
	quantity uint32
}

// follow makes the chain's page from what was read, and advances the chain if it goes on.
func (t *Turn) follow(secret uint64, got content) *model.Page {
	p := t.page()
	if (t.fetch.hops > 0 || len(t.fetch.pages) > 0) && got.final != t.address() {
		p.Final = got.final
	}
	if t.recipe.pager != nil {
		p.URLHash = hashURL(t.address(), secret)
	}
	rows := hashRows(t.recipe, secret, got.rows)
	switch {
	case len(got.rows) == 0 && t.unit.Page == 0:
		p.Outcome, p.Code, p.Last = model.Errored, string(fault.PageNoRows), true
		p.Detail = t.fetch.why
		return p
	case t.unit.Page > 0 && (len(got.rows) == 0 || slices.Contains(t.seen, got.body) ||
		t.knows(rows)):
		p.Outcome, p.Last = model.Empty, true
		return p
	}
	p.Outcome, p.Rows, p.PriceRow, p.Quantity = model.Delivered, got.rows, got.priceRow,
		got.quantity
	t.visited = append(t.visited, p.URLHash)
	next := t.nextURL(got, secret)
	if next == "" {
		p.Last = true
		return p
	}
	t.seen = newest(append(t.seen, got.body), model.MaxSeen)
	t.known = newest(append(t.known, rows...), model.MaxKnownRows)
	t.rendered = t.fetch.by.Renders()
	p.Next = &model.Continuation{Page: t.unit.Page + 1, URL: next, Seen: slices.Clone(t.seen),
		KnownRows: slices.Clone(t.known),
		Rendered:  t.rendered}
	t.left--
	p.Spent = t.left == 0
	t.unit.Page, t.url, t.fetch = p.Next.Page, next, fetchState{at: next}
	return p
}

// nextURL returns the canonical address where the chain goes on; "" if it ends.
func (t *Turn) nextURL(got content, secret uint64) string {
	if t.recipe.pager == nil || t.unit.Page+1 >= t.recipe.maxPages {
		return ""
	}
	start, err := address.Canonical(t.task.URL)
	if err != nil {
		return ""
	}
	next, err := address.Canonical(t.recipe.pager.next(start, t.unit.Page+1, got.link, got.cursor))
	if err != nil || slices.Contains(t.visited, hashURL(next, secret)) {
		return ""
	}
	return next
}

// knows says whether all rows were on the chain's last pages.
func (c *Chain) knows(rows []uint64) bool {
	return !slices.ContainsFunc(rows,
		func(row uint64) bool { return !slices.Contains(c.known, row) })
}

// hashRows returns the hashes of rows, nil for scrapers without pagination.
func hashRows(r *recipe, secret uint64, rows [][]byte) []uint64 {
	if r.pager == nil {
		return nil
	}
	hashes := make([]uint64, len(rows))
	for i, row := range rows {
		hashes[i] = xxh3.HashSeed(row, secret)
	}
	return hashes
}

// hashURL returns the seeded hash of a canonical address, never 0.
func hashURL(address string, secret uint64) uint64 {
	return max(xxh3.HashStringSeed(address, secret), 1)
}

// newest returns a copy of the last elements.
func newest(list []uint64, most int) []uint64 {
	return slices.Clone(list[max(0, len(list)-most):])
}

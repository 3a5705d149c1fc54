package measure

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"

	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/asgoquery"
)

// Bounds of the files that are read, and the promised results.
const (
	minSavedBytes = 2 << 10  // smaller files are stubs or error pages
	maxSavedBytes = 10 << 20 // per page
	savedAtOnce   = 128      // pages in memory
	maxLeft       = 1        // % of the pages that may be left to a tree
	minTimes      = 12       // goquery's time divided by ours
	maxDiffering  = 10       // differing fields that are shown
)

// savedFields are fields for pages of news, shops and directories.
func savedFields() []model.Field {
	return []model.Field{
		{Name: "title", Selector: "title", Kind: model.Text},
		{Name: "description", Selector: "meta[name=description]", Kind: model.Attr,
			Attr: "content"},
		{Name: "canonical", Selector: "link[rel=canonical]", Kind: model.Attr, Attr: "href"},
		{Name: "heading", Selector: "h1", Kind: model.Text},
		{Name: "article", Selector: "article", Kind: model.Text},
		{Name: "cards", Selector: "ul li", Kind: model.Text},
	}
}

// randomSelectors are the parts of random recipes: they match early, late or never, by tag, class,
// id, attribute or context.
var randomSelectors = []string{"title", "meta[property='og:title']", "link[rel=icon]", "h1", "h2",
	"h3 a", "p", "p b", "p > a", "a[href^=http]", "a[title]", "b", "i", "em", "strong", "font",
	"strong a", "a div", "a h2", "a img", "ul", "ol li", "li > a", "li:nth-child(2)", "ul + p",
	"table", "table td", "tr td:nth-child(2)", "td b", "tbody > tr", "th", "form", "form input",
	"input[type=hidden]", "select option", "button", "label", "textarea", "iframe", "script[src]",
	"style", "noscript", "svg", "svg path", "template", "header", "nav a", "nav ul li", "main",
	"main p", "article", "article p", "article h2", "section", "aside", "footer", "footer a",
	"footer p", "figure img", "blockquote", "dl dt", "pre", "time", "html", "head", "body",
	"body > div", "body > *", "div > div > div", "div p ~ p", "div + div", ".title", ".price",
	".content", ".article", ".post", ".author", ".date", ".footer a", ".menu li", ".sidebar",
	".btn", ".active", "[class*=nav]", "[class^=col]", "[id]", "[itemprop=name]", "[role=main]",
	"#content", "#main", "#footer", "#header a", "#comments", ".no-such-class", "#no-such-id",
	"div.no-such-class a", "div:has(h2)", "p:empty", "p:last-child", "a:not([href])", "center",
	"span", "span a", "br", "hr", "img[alt]", "object", "embed", "[lang]", "html[lang] p"}

var randomKinds = []model.Field{{Kind: model.Text}, {Kind: model.Text}, {Kind: model.Exists},
	{Kind: model.Attr, Attr: "class"}, {Kind: model.Attr, Attr: "href"},
	{Kind: model.Attr, Attr: "id"}}

// savedPage is a page of the directory.
type savedPage struct {
	path string
	body []byte
	sum  [sha256.Size]byte
}

// canonical matches the tag in which a page states its address.
var canonical = regexp.MustCompile(`(?i)<(?:link[^>]*rel=["']?canonical|meta[^>]*og:url)[^>]*>`)

// address matches an absolute address in a tag.
var address = regexp.MustCompile(`https?://[^\s"'<>]+`)

// half returns the half of the page's site, or of its path if the site is unknown.
func (p *savedPage) half() saved.Half {
	for _, tag := range canonical.FindAll(p.body, 2) {
		if at, err := url.Parse(string(address.Find(tag))); err == nil && at.Host != "" {
			return saved.HalfOf(strings.TrimPrefix(strings.ToLower(at.Hostname()), "www."))
		}
	}
	return saved.HalfOf(filepath.ToSlash(p.path))
}

// loadSaved reads a file; nil if it is not a page. The error is the file's.
func loadSaved(dir, path string) (*savedPage, error) {
	body, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, nil //nolint:nilerr // it is no page
		}
		if body, err = io.ReadAll(io.LimitReader(unpacked, maxSavedBytes+1)); err != nil {
			return nil, nil //nolint:nilerr // it is no page
		}
	}
	start := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n\f")
	if len(body) < minSavedBytes || len(body) > maxSavedBytes || start[0] != '<' ||
		!bytes.Contains(bytes.ToLower(body), []byte("<body")) {
		return nil, nil
	}
	return &savedPage{path: path, body: body, sum: sha256.Sum256(body)}, nil
}

// savedTally sums up the results.
type savedTally struct {
	pages, bytes, again, left, refused, values, streamed, differing float64
	ours, goquerys                                                  time.Duration
	reasons                                                         map[string]float64
	examples                                                        []string
}

// measurePages reads the pages of a directory with goquery and with our extractor.
func (m *Extract) measurePages(ctx context.Context, on *Bench, report *Report) error {
	reader, err := newSavedReader(m.Random)
	if err != nil {
		return err
	}
	seen := map[[sha256.Size]byte]bool{}
	var some []*savedPage
	err = filepath.WalkDir(m.Pages, func(path string, file fs.DirEntry, err error) error {
		if err != nil || !file.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(m.Pages, path)
		if err != nil {
			return err
		}
		p, err := loadSaved(m.Pages, relative)
		if err != nil || p == nil || seen[p.sum] {
			return err
		}
		seen[p.sum] = true
		if m.Half != "all" && p.half() != saved.Half(m.Half) {
			return nil
		}
		if some = append(some, p); len(some) < savedAtOnce {
			return nil
		}
		err = reader.read(ctx, some)
		some = some[:0]
		on.Say("extract: %.0f pages", reader.pages)
		return err
	})
	if err == nil {
		err = reader.read(ctx, some)
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if reader.pages == 0 {
		return fmt.Errorf("bench: no page of the half %s in %s", m.Half, m.Pages)
	}
	return reader.tell(report)
}

// savedReader reads pages with goquery and with our extractor.
type savedReader struct {
	savedTally
	fields    []model.Field
	extractor *extract.Extractor
	matchers  []goquery.Matcher
	random    int
}

func newSavedReader(random int) (*savedReader, error) {
	r := &savedReader{fields: savedFields(), random: random}
	r.reasons = map[string]float64{}
	extractor, err := extract.Compile(model.Recipe{Type: model.SingleProduct, Fields: r.fields})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r.extractor = extractor
	for _, f := range r.fields {
		matcher, err := cascadia.Compile(f.Selector)
		if err != nil {
			return nil, fmt.Errorf("bench: selector %s: %w", f.Selector, err)
		}
		r.matchers = append(r.matchers, goquery.SingleMatcher(matcher))
	}
	return r, nil
}

// read times both readers on some pages, and then compares their fields.
func (r *savedReader) read(ctx context.Context, pages []*savedPage) error {
	results := make([]extract.Result, len(pages))
	failures := make([]error, len(pages))
	ours, err := leastCPU(func() {
		for i, p := range pages {
			results[i], failures[i] = r.extractor.Extract(p.page())
		}
	})
	if err != nil {
		return err
	}
	goquerys, err := leastCPU(func() {
		for _, p := range pages {
			r.byGoquery(p.body)
		}
	})
	if err != nil {
		return err
	}
	r.ours, r.goquerys = r.ours+ours, r.goquerys+goquerys
	for i, p := range pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.count(results[i], failures[i], len(p.body))
		if err := r.compare(p, results[i], failures[i]); err != nil {
			return err
		}
	}
	return nil
}

// leastCPU returns the shorter processor time of two runs. Neither pays for garbage from before.
func leastCPU(run func()) (time.Duration, error) {
	var took [2]time.Duration
	for i := range took {
		runtime.GC()
		began, err := ownCPU()
		if err != nil {
			return 0, err
		}
		run()
		ended, err := ownCPU()
		if err != nil {
			return 0, err
		}
		took[i] = ended - began
	}
	return min(took[0], took[1]), nil
}

func (p *savedPage) page() extract.Page {
	return extract.Page{ContentType: "text/html", Body: p.body}
}

// byGoquery reads the fields as goquery's users do, with selectors compiled once. The time of a
// page that goquery refuses counts, too.
func (r *savedReader) byGoquery(body []byte) {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return
	}
	row := make(map[string]any, len(r.fields))
	for i, f := range r.fields {
		found := doc.FindMatcher(r.matchers[i])
		switch {
		case found.Length() == 0:
			row[f.Name] = nil
		case f.Kind == model.Attr:
			row[f.Name] = found.AttrOr(f.Attr, "")
		default:
			row[f.Name] = strings.TrimSpace(found.Text())
		}
	}
	_, _ = json.Marshal(row) // a row needs it; texts never fail
}

func (r *savedReader) count(got extract.Result, err error, size int) {
	r.pages++
	r.bytes += float64(size)
	switch {
	case err != nil:
		r.refused++
	case got.Parser == extract.Tree:
		r.left++
		r.reasons["left to a tree: "+got.Odd]++
	case got.Odd != "":
		r.again++
		r.reasons["read again: "+got.Odd]++
	}
}

// compare counts the differing fields of the typical recipe and of random ones. It does not fail.
func (r *savedReader) compare(p *savedPage, got extract.Result, err error) error {
	doc, refused := asgoquery.Page(string(p.body))
	if refused != nil {
		return nil //nolint:nilerr // as it would be here, unless its fields stand before that
	}
	r.hold(p, doc, r.fields, got, err)
	rng := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(p.sum[:]), 1))
	for range r.random {
		fields := randomFields(rng)
		extractor, err := extract.Compile(model.Recipe{Type: model.SingleProduct, Fields: fields})
		if err != nil {
			return fmt.Errorf("%v: %w", fields, err)
		}
		got, err := extractor.Extract(p.page())
		r.hold(p, doc, fields, got, err)
	}
	return nil
}

// randomFields returns six random fields.
func randomFields(rng *rand.Rand) []model.Field {
	var fields []model.Field
	for i := range len(savedFields()) {
		f := randomKinds[rng.IntN(len(randomKinds))]
		f.Name = fmt.Sprintf("f%d", i)
		f.Selector = randomSelectors[rng.IntN(len(randomSelectors))]
		fields = append(fields, f)
	}
	return fields
}

// hold compares the fields of a page with goquery's.
func (r *savedReader) hold(p *savedPage, doc *goquery.Document, fields []model.Field,
	got extract.Result, err error) {
	row := map[string]any{}
	if err == nil && len(got.Rows) > 0 {
		err = json.Unmarshal(got.Rows[0], &row)
	}
	for _, f := range fields {
		r.values++
		if got.Parser == extract.Streaming {
			r.streamed++
		}
		have, want := row[f.Name], asgoquery.Field(doc, f)
		if have == nil && f.Kind == model.Exists && len(got.Rows) == 0 {
			have = false // a row without values does not count
		}
		if err == nil && have == want {
			continue
		}
		if r.differing++; r.differing <= maxDiffering {
			r.examples = append(r.examples, fmt.Sprintf("%s: %s %s %s: %.80q, goquery %.80q, %v",
				p.path, f.Kind, f.Selector, f.Attr, fmt.Sprint(have), fmt.Sprint(want), err))
		}
	}
}

func (r *savedReader) tell(report *Report) error {
	all := report.table("Saved pages, six fields:", "pages", "count", "KB a page",
		"fields decided in one pass, %", "read again as a whole, %", "left to a tree, %",
		"refused, %", "CPU a page, µs", "goquery's, µs", "times")
	times := float64(r.goquerys) / float64(max(r.ours, 1))
	all.add("all", r.pages, r.bytes/r.pages/1000, percent(r.streamed, r.values),
		percent(r.again, r.pages), percent(r.left, r.pages), percent(r.refused, r.pages),
		micros(r.ours)/r.pages, micros(r.goquerys)/r.pages, times)
	reasons := report.table("Pages that were not read in one go:", "why", "count",
		"of all pages, %")
	for _, why := range slices.SortedFunc(maps.Keys(r.reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.reasons[b], r.reasons[a]), cmp.Compare(a, b))
	}) {
		reasons.add(why, r.reasons[why], percent(r.reasons[why], r.pages))
	}
	report.atMost("pages left to a tree", percent(r.left, r.pages), maxLeft, "% of the pages")
	report.atMost("time by goquery's", 1/times, 1.0/minTimes, "of it")
	report.atMost("fields that are not goquery's", r.differing, 0,
		fmt.Sprintf("of %.0f fields", r.values))
	for _, example := range r.examples {
		report.note("%s", example)
	}
	if r.differing > 0 {
		return errors.Join(errDiffering, fmt.Errorf("bench: %s", strings.Join(r.examples, "\n")))
	}
	return nil
}

var errDiffering = errors.New("bench: fields are not goquery's")

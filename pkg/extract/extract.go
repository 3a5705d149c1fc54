// Package extract owns page → rows. It checks and compiles a scraper's recipe once per revision. It
// turns what a fetch delivered into rows and the next link of a pagination chain. It fetches,
// stores and charges nothing; of prices it knows only its endpoints' rows of the price table
// (Prices). Each scraper type has a folder; catalog.go lists them.
package extract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// Bounds on what a page may give. A page beyond any of them gives no row and the error
// row_too_large.
const (
	MaxRowBytes  = rows.MaxRowBytes  // one row as JSON, 1,000,000
	MaxRows      = rows.MaxRows      // rows of one page, 100,000
	MaxPageBytes = rows.MaxPageBytes // all rows of one page as JSON, 32,000,000
)

// Input and output types, shared with the scraper types.
type (
	Page   = page.Page
	Ask    = page.Ask
	Prompt = page.Prompt
)

// Result is what Extract makes of a page.
type Result struct {
	// Rows are JSON objects with members in the order of itemsConfig; no key begins with "_".
	Rows [][]byte
	// Next is where the NEXT_LINK selector leads, as an absolute http(s) address; "" if nowhere.
	Next string
	// Cursor is the value at JSON_CURSOR's cursorPath, a text or a number as written; "" if there
	// is none.
	Cursor string
	// Ask is nil when the page is complete. Otherwise there are no rows yet.
	Ask *Ask
	// Rejected counts rows that do not fit the scraper's schema. They are not among Rows.
	Rejected int
	// Free says that the page is not charged although it has rows.
	Free bool
	// Parser is the parser that read the page as HTML.
	Parser Parser
	// Odd is why the page was not read in one pass: its markup required reading it again as a
	// whole, or with the parser Tree. It is "" when one pass was enough.
	Odd string
}

// Parser is a way to read HTML.
type Parser uint8

// The parsers. Tree is goquery's parser, for markup that moves elements around.
const (
	NoParser  Parser = iota // not read as HTML, or the type parses pages on its own
	Streaming               // in one pass, only as far as needed
	Tree                    // builds a tree of the whole page first
	Parsers                 // the number of parsers
)

// String returns the parser's name in metrics.
func (p Parser) String() string { return [...]string{"none", "streaming", "tree"}[p] }

// Extractor is a compiled recipe. It is safe for concurrent use.
type Extractor struct {
	rows   rows.Maker
	next   link
	recipe model.Recipe
	pages  sync.Pool // of *memory, for reuse
}

// memory is the working memory of one Extract call.
type memory struct {
	doc  dom.Document
	json jsondoc.Document
	out  rows.Writer
}

// within prepares the memory for work that ends with the context.
func (m *memory) within(ctx context.Context) {
	m.doc.Within(ctx)
	m.json.Within(ctx)
	m.out.Reset()
	m.out.Within(ctx)
}

// Compile checks and compiles a recipe. Its error is a fault.List. Each fault has the code
// schema_validation_failed (type_not_runnable for a type that nothing here runs) and names its
// field, such as `itemsConfig[2].selector`.
func Compile(r model.Recipe) (*Extractor, error) {
	e := &Extractor{recipe: r, pages: sync.Pool{New: func() any { return new(memory) }}}
	var faults fault.List
	switch compile := compiler(r); {
	case compile != nil:
		e.rows, faults = compile(r)
	case r.Endpoint != "":
		faults = append(faults,
			fault.Invalid(fault.TypeNotRunnable, "endpointTag", "no extraction for the tag %.100q",
				r.Endpoint))
	default:
		faults = append(faults,
			fault.Invalid(fault.TypeNotRunnable, "type", "no extraction for the type %q", r.Type))
	}
	next, f := compileLink(r)
	if f != nil {
		faults = append(faults, f)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if e.next = next; next.selector != nil {
		e.rows.Only = nil // the link and the base element may be anywhere
	}
	return e, nil
}

// Patterns returns the size of the recipe's regular expressions, as pattern.Total counts it.
func (e *Extractor) Patterns() int {
	size := e.rows.Patterns
	if e.next.path != nil {
		size += e.next.path.Patterns()
	}
	if e.next.selector != nil {
		size += e.next.selector.Patterns()
	}
	return size
}

// CheckNew is Validate for a recipe that is about to be saved. It also refuses selectors that match
// on no page, and names with characters that hide others, once nothing else is wrong. Recipes that
// were saved before may have them, and still run.
func CheckNew(r model.Recipe) fault.List {
	faults := Validate(r)
	if len(faults) > 0 {
		return faults // the selectors may be beyond the bounds that make another look at them cheap
	}
	for i, field := range r.Fields {
		path := fmt.Sprintf("itemsConfig[%d]", i)
		if strings.ContainsFunc(field.Name, utf8text.Hides) {
			faults = append(faults, fault.Invalid(fault.SchemaValidation, path+".name",
				"a name must not have characters that change the direction of writing: "+
					"they hide what it is"))
		}
		if f := rows.CheckReach(path+".selector", field.Selector); f != nil {
			faults = append(faults, f)
		}
	}
	if p := r.Pagination; p != nil && p.Type == model.NextLink {
		if f := rows.CheckReach("sourceConfig.pagination.selector", p.Selector); f != nil {
			faults = append(faults, f)
		}
	}
	return faults
}

// Validate runs only the checks of Compile. It returns an empty list for a valid recipe.
func Validate(r model.Recipe) fault.List {
	_, err := Compile(r)
	var faults fault.List
	errors.As(err, &faults)
	return faults
}

// Extract makes the rows of the first page. The other pages are the answers to the Asks of earlier
// calls, in order. The result depends on the pages alone. Errors are coded: not_html, not_json,
// unparsable, row_too_large. A page without a row is not an error here.
func (e *Extractor) Extract(pages ...Page) (Result, error) {
	return e.ExtractContext(context.Background(), pages...)
}

// ExtractContext is Extract with a context. It stops when the context ends and then returns the
// context's error.
func (e *Extractor) ExtractContext(ctx context.Context, pages ...Page) (Result, error) {
	m := e.pages.Get().(*memory)
	m.within(ctx)
	defer func() {
		m.within(context.Background())
		e.pages.Put(m)
	}()
	switch {
	case e.rows.Read != nil:
		return e.read(pages, m)
	case e.rows.JSON != nil && rows.IsEmbedded(e.recipe.Fields) && pages[0].IsHTML():
		return e.embedded(pages[0], m)
	case e.rows.JSON != nil:
		return e.json(pages[0], m)
	default:
		return e.html(pages[0], m)
	}
}

func (e *Extractor) html(p Page, m *memory) (Result, error) {
	if err := p.CheckHTML(); err != nil {
		return Result{}, err
	}
	defer m.doc.Reset()
	if err := m.doc.Parse(p.Body, e.rows.Only...); err != nil {
		return Result{}, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	m.out.At(p.URL)
	if err := e.rows.Rows(&m.doc, &m.out); err != nil {
		return Result{}, fmt.Errorf("rows of %s: %w", p.URL, err)
	}
	next, err := e.nextLink(p, m)
	if err != nil {
		return Result{}, err
	}
	parser := Streaming
	if m.doc.FellBack() {
		parser = Tree
	}
	return Result{Rows: m.out.Rows(), Next: next, Parser: parser, Odd: m.doc.Odd().String()},
		nil
}

func (e *Extractor) json(p Page, m *memory) (Result, error) {
	lines, err := p.CheckJSON()
	if err != nil {
		return Result{}, err
	}
	defer m.json.Reset()
	if err := m.json.Parse(p.Body, lines); err != nil {
		return Result{}, fault.Wrap(fault.PageUnparsable, err, "the body cannot be parsed")
	}
	if err := e.rows.JSON(&m.json, &m.out); err != nil {
		return Result{}, fmt.Errorf("rows of %s: %w", p.URL, err)
	}
	next, cursor := e.next.ofJSON(&m.json, p.URL)
	if err := m.json.Err(); err != nil {
		return Result{}, tooSlow(m.out.Context(), err, "the paths take too long on this body")
	}
	return Result{Rows: m.out.Rows(), Next: next, Cursor: cursor}, nil
}

// tooSlow is the error of work that was abandoned: the context's own error, or else one coded
// too_costly.
func tooSlow(ctx context.Context, err error, why string) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return fault.Wrap(fault.PageTooCostly, err, "%s", why)
}

// Unfetched makes the rows of an address that needs no fetch, from a page without a body. It
// returns false if the page has to be fetched.
func (e *Extractor) Unfetched(p Page) (Result, bool, error) {
	if e.rows.Unfetched == nil {
		return Result{}, false, nil
	}
	m := e.pages.Get().(*memory)
	defer e.pages.Put(m)
	m.within(context.Background())
	done, err := e.rows.Unfetched(p, &m.out)
	if err != nil || !done {
		return Result{}, done, err
	}
	return Result{Rows: m.out.Rows(), Free: true}, true, nil
}

// TakesFailures says that Extract also makes rows of a first page that could not be fetched, which
// has a Code.
func (e *Extractor) TakesFailures() bool { return e.rows.Failures }

// Limits returns bounds on the fetch attempts for all pages of one unit, and on the time since its
// first request started. 0 means the usual limit.
func (e *Extractor) Limits() (fetches int, within time.Duration) {
	return e.rows.Fetches, e.rows.Within
}

// read is Extract for the types that parse pages on their own.
func (e *Extractor) read(pages []Page, m *memory) (Result, error) {
	more, err := e.rows.Read(pages, &m.out)
	if err != nil {
		return Result{}, fmt.Errorf("rows of %s: %w", pages[0].URL, err)
	}
	if more.Next == "" && more.Ask == nil && len(m.out.Rows()) > 0 {
		if more.Next, err = e.following(pages[0], m); err != nil {
			return Result{}, err
		}
	}
	return Result{Rows: m.out.Rows(), Next: more.Next, Ask: more.Ask, Rejected: more.Rejected,
		Free: more.Free}, nil
}

// Package search owns SEARCH_ENGINE_SEARCH: one row for each result on a search engine's page, in
// the page's order. It knows SearXNG's JSON; for other engines, the operator states where the
// results are on the page. It also owns the list of engines and the addresses of queries. The
// fetcher sends the queries.
package search

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/multiple"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Result is a row. Position is the result's place on its page, and Page the page's number, both
// from 1.
type Result struct {
	Position int     `json:"position"`
	Title    string  `json:"title"`
	URL      string  `json:"url"`
	Snippet  *string `json:"snippet"`
	// Kind is organic, or the engine's own word: ad, news, image, video, infobox …
	Kind  string  `json:"kind"`
	Query *string `json:"query"`
	Page  int     `json:"page"`
}

// Organic is the kind of a result for which the engine states no other.
const Organic = "organic"

// Compile checks and compiles the engine's fields. A recipe that no launch has given an engine yet
// reads SearXNG's JSON.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	if len(r.Fields) > 0 {
		return rows.Maker{}, fault.List{fault.Invalid(fault.SchemaValidation, "itemsConfig",
			"results have fields of their own; leave it out")}
	}
	engine := r.Search
	if engine == nil {
		engine = &model.SearchEngine{}
	}
	if len(engine.Results) == 0 {
		return rows.Maker{Read: reader(engine, searxng)}, nil
	}
	maker, faults := multiple.Compile(model.Recipe{Type: model.MultipleProducts,
		Fields: engine.Results})
	if len(faults) > 0 {
		return rows.Maker{}, faults
	}
	return rows.Maker{Read: reader(engine,
		func(p page.Page) ([]found, error) { return onPage(maker, p) })}, nil
}

// found is a result as the engine gives it.
type found struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
	Kind    string `json:"kind"`
}

func reader(engine *model.SearchEngine, read func(page.Page) ([]found, error)) func([]page.Page,
	*rows.Writer) (rows.More, error) {
	return func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		var more rows.More
		base, err := url.Parse(pages[0].URL)
		if err != nil {
			return more, fault.Wrap(fault.PageUnparsable, err, "the page has no address")
		}
		results, err := read(pages[0])
		if err != nil {
			return more, err
		}
		query, number := placeOf(engine, base)
		position := 0
		for _, f := range results {
			row := Result{Title: strings.TrimSpace(f.Title), URL: target(base, f.URL), Kind: f.Kind,
				Query: query, Page: number}
			if row.Title == "" || row.URL == "" {
				continue
			}
			position++
			row.Position = position
			if row.Kind == "" {
				row.Kind = Organic
			}
			if snippet := strings.TrimSpace(f.Snippet); snippet != "" {
				row.Snippet = &snippet
			}
			var encoded bytes.Buffer
			encoder := json.NewEncoder(&encoded)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(row); err != nil {
				return more, fault.Wrap(fault.PageUnparsable, err, "a result cannot be written")
			}
			if err := out.Whole(bytes.TrimSpace(encoded.Bytes())); err != nil {
				return more, err
			}
		}
		return more, nil
	}
}

// placeOf reads a page's query and number from its address.
func placeOf(engine *model.SearchEngine, address *url.URL) (query *string, number int) {
	given := address.Query()
	if name := queryParam(engine.URL); name != "" && given.Has(name) {
		text := given.Get(name)
		query = &text
	}
	start, step := 1, 1
	if engine.PageStart != nil {
		start = *engine.PageStart
	}
	if engine.PageStep != nil {
		step = max(*engine.PageStep, 1)
	}
	value, err := strconv.Atoi(given.Get(engine.PageParam))
	if engine.PageParam == "" || err != nil || value < start {
		return query, 1
	}
	return query, (value-start)/step + 1
}

// target returns where a result leads. Some engines wrap addresses in their own, which hold the
// target as a parameter.
func target(base *url.URL, link string) string {
	u, err := base.Parse(strings.TrimSpace(link))
	if link == "" || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	if sameSite(u.Hostname(), base.Hostname()) {
		for _, name := range [...]string{"uddg", "url", "q", "u"} {
			inner, err := url.Parse(u.Query().Get(name))
			if err == nil && (inner.Scheme == "http" || inner.Scheme == "https") &&
				inner.Host != "" {
				return inner.String()
			}
		}
	}
	return u.String()
}

func sameSite(a, b string) bool {
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

// onPage reads a page with the fields that the operator configured.
func onPage(maker rows.Maker, p page.Page) ([]found, error) {
	var doc dom.Document
	if err := doc.Parse(p.Body); err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	var out rows.Writer
	if err := maker.Rows(&doc, &out); err != nil {
		return nil, err
	}
	if err := doc.Err(); err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err,
			"the selectors take too long on this page")
	}
	results := make([]found, 0, len(out.Rows()))
	for _, row := range out.Rows() {
		var f found
		if err := json.Unmarshal(row, &f); err != nil {
			return nil, fault.Wrap(fault.PageUnparsable, err, "a result cannot be read")
		}
		results = append(results, f)
	}
	return results, nil
}

// kinds maps SearXNG's categories to the rows' kinds where the two differ.
var kinds = map[string]string{"general": Organic, "images": "image", "videos": "video"}

// searxng reads a SearXNG endpoint's JSON answer.
func searxng(p page.Page) ([]found, error) {
	var answer struct {
		Results []struct {
			Title    string `json:"title"`
			URL      string `json:"url"`
			Content  string `json:"content"`
			Category string `json:"category"`
		} `json:"results"`
		Infoboxes []struct {
			Infobox string `json:"infobox"`
			Content string `json:"content"`
			ID      string `json:"id"`
			URLs    []struct {
				URL string `json:"url"`
			} `json:"urls"`
		} `json:"infoboxes"`
	}
	if err := json.Unmarshal(p.Body, &answer); err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the answer is no JSON of SearXNG")
	}
	var results []found
	for _, r := range answer.Results {
		kind := kinds[r.Category]
		if kind == "" {
			kind = r.Category
		}
		results = append(results, found{Title: r.Title, URL: r.URL, Snippet: r.Content, Kind: kind})
	}
	for _, box := range answer.Infoboxes {
		f := found{Title: box.Infobox, URL: box.ID, Snippet: box.Content, Kind: "infobox"}
		if len(box.URLs) > 0 {
			f.URL = box.URLs[0].URL
		}
		results = append(results, f)
	}
	return results, nil
}

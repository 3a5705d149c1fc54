// Package detect owns the answer to "what could be scraped here?". It tries every strategy that
// fits a page and proposes scrapers, the best first. Each proposal comes with the rows that the
// proposed scraper makes of the page. detect saves nothing and knows no scraper type's internals:
// each proposal is compiled and run like any recipe.
//
// The strategies are these. Fields that the caller names. Data that the page states
// (APPLICATION_LD_JSON). A shop plugin (MARKETPLACE). Repeated items, or a table whose head names
// its columns (MULTIPLE_PRODUCTS). A page about one thing (SINGLE_PRODUCT). Arrays and objects in a
// JSON body, or in JSON that an HTML page embeds for its scripts, read by JSONPath. A schema that
// fits the page's subject (AI_CONF).
package detect

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a proposal's sample rows, and of the number of proposals.
const (
	maxSample      = 20
	maxSampleBytes = 100_000
	maxCandidates  = 10
	// maxTree is less than other types read, because detection keeps further data about each
	// element.
	maxTree = tree.MaxBytes / 2
)

// Candidate is a row of a detection: a scraper without name and address, and the rows that it makes
// of the page.
type Candidate struct {
	Strategy   string            `json:"strategy"`
	Score      float64           `json:"score"`
	Scraper    model.Scraper     `json:"scraper"`
	SampleData []json.RawMessage `json:"sampleData"`
}

// Schema is an extraction schema that an AI_CONF proposal may use. A detection's recipe holds a
// JSON array of them in its Schema.
type Schema struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"` // PRODUCT, ARTICLE …
	Content json.RawMessage `json:"content"`
}

// Run makes a recipe's rows of a page.
type Run func(model.Recipe, page.Page) ([][]byte, error)

// Compile checks the schemas. If the recipe has fields, the detection also tries them as the
// caller's own. HiddenData stands for tryWithHiddenData.
func Compile(r model.Recipe, run Run, tags []string) (rows.Maker, fault.List) {
	schemas, faults := readSchemas(r)
	if faults != nil {
		return rows.Maker{}, faults
	}
	return rows.Maker{Read: func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		d := &detection{recipe: r, page: pages[0], run: run, tags: tags, schemas: schemas}
		for _, c := range d.candidates() {
			if err := writeRow(out, c); err != nil {
				return rows.More{}, err
			}
		}
		return rows.More{}, nil
	}}, nil
}

func readSchemas(r model.Recipe) (schemas []Schema, faults fault.List) {
	if len(r.Schema) > 0 {
		if err := json.Unmarshal(r.Schema, &schemas); err != nil {
			return nil, fault.List{fault.Invalid(fault.SchemaValidation, "schema",
				"not an array of schemas: %v", err)}
		}
	}
	return schemas, nil
}

// writeRow writes a value as a row.
func writeRow(out *rows.Writer, value any) error {
	var row bytes.Buffer
	encoder := json.NewEncoder(&row)
	encoder.SetEscapeHTML(false) // keep rows unchanged
	if err := encoder.Encode(value); err != nil {
		return fault.Wrap(fault.PageUnparsable, err, "a proposal cannot be written")
	}
	return out.Whole(bytes.TrimSpace(row.Bytes()))
}

// detection is the state of one page's detection.
type detection struct {
	recipe  model.Recipe
	page    page.Page
	run     Run
	tags    []string
	schemas []Schema
	found   []Candidate
	next    *model.Pagination // the pagination of the page's list, as far as known
}

// probe is a parsed page under examination.
type probe struct {
	*outline
	root     *html.Node
	base     *url.URL
	sel      *selectors
	captions []caption
	things   []structured.Thing // stated things that the page is about

	firstHeads   int // h1 elements outside menus
	headingKnown bool
	headingNode  *html.Node
	headingShare float64
}

func newProbe(root *html.Node, base *url.URL) *probe {
	p := &probe{outline: newOutline(root), root: root, base: base, sel: newSelectors(root)}
	p.captions = p.findCaptions()
	return p
}

// isBeside says whether an element is in a menu, a footer or the like.
func (p *probe) isBeside(n *html.Node) bool {
	i, known := p.index[n]
	return known && p.all[i].beside
}

func (d *detection) candidates() []Candidate {
	if isJSON(d.page) {
		d.json()
	} else {
		d.html()
	}
	slices.SortStableFunc(d.found, func(a, b Candidate) int { return compare(b.Score, a.Score) })
	return d.found[:min(len(d.found), maxCandidates)]
}

// try runs a proposal and keeps it if it gives rows.
func (d *detection) try(strategy string, score float64, scraper model.Scraper,
	schema json.RawMessage) {
	recipe := scraper.Recipe()
	recipe.Schema = schema
	made, err := d.run(recipe, d.page)
	if err != nil || len(made) == 0 {
		return
	}
	c := Candidate{Strategy: strategy, Score: score, Scraper: scraper,
		SampleData: []json.RawMessage{}}
	size := 0
	for _, row := range made {
		if size += len(row); len(c.SampleData) == maxSample || size > maxSampleBytes {
			break
		}
		c.SampleData = append(c.SampleData, row)
	}
	if len(c.SampleData) == 0 {
		return
	}
	d.found = append(d.found, c)
}

// own tries the fields that the caller names.
func (d *detection) own() {
	if len(d.recipe.Fields) == 0 {
		return
	}
	for i, kind := range []model.ScraperType{model.MultipleProducts, model.SingleProduct} {
		d.try("fields", 100-float64(i), model.Scraper{Type: kind, ItemsConfig: d.recipe.Fields},
			nil)
	}
}

func (d *detection) json() {
	value, err := structured.ParseJSON(string(d.page.Body))
	if err != nil {
		return
	}
	d.own()
	var next *model.Pagination
	if page, err := url.Parse(d.page.URL); err == nil {
		if next = nextInJSON(value, "$", page, 0); next == nil && !endsIn(value, 0) {
			next = nextByAddress(page)
		}
	}
	for i, t := range tables(value, "$") {
		scraper := model.Scraper{Type: model.MultipleProducts, ItemsConfig: t.fields}
		scraper.SourceConfig.Pagination = next
		d.try("json", 90-float64(i), scraper, nil)
	}
	if fields := object(value); fields != nil {
		d.try("json", 60, model.Scraper{Type: model.SingleProduct, ItemsConfig: fields}, nil)
	}
}

func (d *detection) html() {
	root, err := tree.Parse(d.page.Body, maxTree)
	if err != nil {
		d.own()
		return
	}
	base, err := url.Parse(d.page.URL)
	if err != nil {
		return
	}
	p := newProbe(root, base)
	data := structured.ReadTree(root, d.page.URL)
	p.things = thingsOf(data)
	found := p.lists()
	product := p.product(found)
	next, counted := p.next(found)
	d.next = next
	topic := topicOf(data, p, found, product, counted)
	lists := make([]listing, len(found))
	for i, l := range found {
		lists[i] = listing{l.config, l.score, l.has("price")}
	}
	var tables []columns
	for _, t := range p.headed() {
		tables = append(tables,
			columns{t.fields, len(found) > 0 && (!sameItems(found[0].items, t.rows) ||
				!wholeCells(found[0].titles))})
	}
	blobs := structured.NamedBlobs(data.Framework)
	// The proposals parse the page again, so the tree is not needed below.
	d.own()
	d.stated(topic)
	d.shops(topic, lists)
	for i, l := range lists {
		d.list(l, i, topic, next)
	}
	for i, t := range tables {
		d.table(t, i, topic, next)
	}
	if product != nil {
		score := 70.0
		if !topic.single && len(lists) > 0 {
			score = 72
		}
		d.try("product", score, model.Scraper{Type: model.SingleProduct, ItemsConfig: product}, nil)
	}
	d.embedded(blobs, topic, len(lists) > 0, next)
	d.schema(topic)
	d.weigh(topic)
}

// unpriced is the score that a proposal without a price loses if another one has a price.
const unpriced = 20

// weigh ranks product proposals that have a price before those that have none.
func (d *detection) weigh(t topic) {
	if t.kind != "" && t.kind != "PRODUCT" {
		return
	}
	about := func(c *Candidate) bool {
		return c.Strategy != "list" && c.Strategy != "table" && c.Strategy != "fields"
	}
	if !slices.ContainsFunc(d.found, func(c Candidate) bool { return about(&c) && c.hasPrice() }) {
		return
	}
	for i := range d.found {
		if c := &d.found[i]; about(c) && !c.hasPrice() {
			c.Score -= unpriced
		}
	}
}

// hasPrice says whether the first row has a price.
func (c *Candidate) hasPrice() bool {
	var row map[string]any
	if err := json.Unmarshal(c.SampleData[0], &row); err != nil {
		return false // rows are always objects
	}
	for name, value := range row {
		if value != nil && (name == "lowPrice" || strings.HasSuffix(name, "price") ||
			strings.HasSuffix(name, "_lowPrice")) {
			return true
		}
	}
	return false
}

func (d *detection) stated(t topic) {
	score := 20.0
	if t.rich || t.listed {
		score = 60
	}
	scraper := model.Scraper{Type: model.ApplicationLDJSON}
	scraper.SourceConfig.TryWithHiddenData = d.recipe.HiddenData
	before := len(d.found)
	d.try("structured-data", score, scraper, nil)
	if len(d.found) == before || !t.single {
		return
	}
	if c := &d.found[before]; len(c.SampleData) == 1 && c.names(t.heading) {
		c.Score = 80
	}
}

// names says whether a value of the first row equals text.
func (c *Candidate) names(text string) bool {
	var row map[string]any
	if err := json.Unmarshal(c.SampleData[0], &row); err != nil {
		return false // rows are always objects
	}
	for _, value := range row {
		if s, ok := value.(string); ok && strings.Join(strings.Fields(s), " ") == text {
			return true
		}
	}
	return false
}

// shops tries the shop plugins. The one for lists scores higher on a page with a list.
func (d *detection) shops(t topic, lists []listing) {
	for i, tag := range d.tags {
		score := 75.0
		if (i == 0) != t.single {
			score = 40
		}
		if i == 1 && len(lists) > 0 && lists[0].priced && !t.single {
			score = 82
		}
		before := len(d.found)
		d.try("shop", score-float64(i),
			model.Scraper{Type: model.Marketplace, Config: &model.ScraperConfig{EndpointTag: tag}},
			nil)
		if i == 0 && len(d.found) > before && !d.found[before].names(t.heading) {
			d.found[before].Score = 38 // probably not what the page is about
		}
	}
}

// listing is the data for proposing a list, without its elements.
type listing struct {
	config []model.Field
	score  float64
	priced bool
}

// list proposes a list of repeated items.
func (d *detection) list(l listing, place int, t topic, next *model.Pagination) {
	if !isTelling(l.config) {
		return
	}
	scraper := model.Scraper{Type: model.MultipleProducts, ItemsConfig: l.config}
	score := 85.0
	if t.single {
		score = 45
	}
	if place == 0 {
		scraper.SourceConfig.Pagination = next
	}
	d.try("list", score-10*float64(place), scraper, nil)
}

// columns is the data for proposing a table, without its elements.
type columns struct {
	config []model.Field
	beside bool // the page's main list has other items
}

// table proposes a table's rows with the column names of its head. It scores above the same rows as
// a list, but below a list of other items, because the table is then secondary.
func (d *detection) table(found columns, place int, t topic, next *model.Pagination) {
	scraper := model.Scraper{Type: model.MultipleProducts, ItemsConfig: found.config}
	score := 86.0
	switch {
	case t.single:
		score = 32
	case found.beside:
		score = 60
	}
	if place == 0 {
		scraper.SourceConfig.Pagination = next
	}
	d.try("table", score-float64(place), scraper, nil)
}

// schema tries AI_CONF with the schema for the page's subject.
func (d *detection) schema(t topic) {
	for _, s := range d.schemas {
		if s.Type == t.kind {
			d.try("schema", 50,
				model.Scraper{Type: model.AIConf, Schema: &model.SchemaRef{ID: s.ID}}, s.Content)
			return
		}
	}
}

// String summarizes the candidate for tests and logs.
func (c *Candidate) String() string {
	names := make([]string, len(c.Scraper.ItemsConfig))
	for i, f := range c.Scraper.ItemsConfig {
		names[i] = f.Name
	}
	return c.Strategy + " " + string(c.Scraper.Type) + " " + strconv.FormatFloat(c.Score, 'f', -1,
		64) + " " +
		strconv.Itoa(len(c.SampleData)) + " rows: " + strings.Join(names, " ")
}

// Package detect owns the answer to "what could be scraped here?". It tries every strategy that
// fits a page and proposes scrapers, the best first. Each comes with the rows that this very
// scraper makes of the page. It saves nothing, and knows no strategy's insides: each proposal is
// compiled and run like any recipe.
//
// The strategies are these. The caller names fields. The page states data (APPLICATION_LD_JSON). A
// shop plugin knows it (MARKETPLACE). Items repeat, or a table's heads name its columns
// (MULTIPLE_PRODUCTS). The page is about one thing (SINGLE_PRODUCT). A JSON body has arrays and
// objects, read by JSONPath, and so has what an HTML page embeds for its scripts. AI_CONF has a
// schema that fits what the page is about.
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

// Bounds of a proposal's rows as they are shown, and of the proposals.
const (
	maxSample      = 20
	maxSampleBytes = 100_000
	maxCandidates  = 10
	// maxTree is less than other types read, since what is found out about elements comes on top of
	// it.
	maxTree = tree.MaxBytes / 2
)

// Candidate is a row of a detection: a scraper without name and address, and what it makes of the
// page.
type Candidate struct {
	Strategy   string            `json:"strategy"`
	Score      float64           `json:"score"`
	Scraper    model.Scraper     `json:"scraper"`
	SampleData []json.RawMessage `json:"sampleData"`
}

// Schema is an extraction schema that AI_CONF may be proposed with. The recipe of a detection has a
// JSON array of them as its schema.
type Schema struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"` // PRODUCT, ARTICLE …
	Content json.RawMessage `json:"content"`
}

// Run makes the rows of a page by a recipe.
type Run func(model.Recipe, page.Page) ([][]byte, error)

// Compile checks the schemas. Fields, which may be none, are tried as the caller's own. HiddenData
// is tryWithHiddenData.
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
	encoder.SetEscapeHTML(false) // rows stay as they are
	if err := encoder.Encode(value); err != nil {
		return fault.Wrap(fault.PageUnparsable, err, "a proposal cannot be written")
	}
	return out.Whole(bytes.TrimSpace(row.Bytes()))
}

// detection is the work on one page.
type detection struct {
	recipe  model.Recipe
	page    page.Page
	run     Run
	tags    []string
	schemas []Schema
	found   []Candidate
	next    *model.Pagination // how the page's list goes on, as far as that is known
}

// probe is a parsed page.
type probe struct {
	*outline
	root     *html.Node
	base     *url.URL
	sel      *selectors
	captions []caption
	things   []structured.Thing // that the page is about by what it states

	firstHeads   int // outside of menus
	headingKnown bool
	headingNode  *html.Node
	headingShare float64
}

func newProbe(root *html.Node, base *url.URL) *probe {
	p := &probe{outline: newOutline(root), root: root, base: base, sel: newSelectors(root)}
	p.captions = p.findCaptions()
	return p
}

// isBeside says whether an element stands in a menu, a footer or the like.
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

// try runs a proposal, and keeps it if it has rows that another does not have already.
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
	// From here on the tree is not needed: those that are tried parse the page again.
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

// unpriced is what a proposal without a price loses against others that have one.
const unpriced = 20

// weigh puts proposals for a product that have its price before those that have not.
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
		return false // a row is an object
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

// names says whether a value of the first row is the text.
func (c *Candidate) names(text string) bool {
	var row map[string]any
	if err := json.Unmarshal(c.SampleData[0], &row); err != nil {
		return false // a row is an object
	}
	for _, value := range row {
		if s, ok := value.(string); ok && strings.Join(strings.Fields(s), " ") == text {
			return true
		}
	}
	return false
}

// shops tries the plugins for shops: that for lists where there is a list.
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
			d.found[before].Score = 38 // something that is beside what the page is about
		}
	}
}

// listing is what is proposed of a list, without its elements.
type listing struct {
	config []model.Field
	score  float64
	priced bool
}

// list proposes items that repeat.
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

// columns is what is proposed of a table, without its elements.
type columns struct {
	config []model.Field
	beside bool // it stands beside a list of something else
}

// table proposes the rows of a table by the names in its head. That is better than the same rows as
// a list, and less than a list of something else, which the table then stands beside.
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

// schema tries AI_CONF with the schema of what the page is about.
func (d *detection) schema(t topic) {
	for _, s := range d.schemas {
		if s.Type == t.kind {
			d.try("schema", 50,
				model.Scraper{Type: model.AIConf, Schema: &model.SchemaRef{ID: s.ID}}, s.Content)
			return
		}
	}
}

// String is the candidate in short, for tests and logs.
func (c *Candidate) String() string {
	names := make([]string, len(c.Scraper.ItemsConfig))
	for i, f := range c.Scraper.ItemsConfig {
		names[i] = f.Name
	}
	return c.Strategy + " " + string(c.Scraper.Type) + " " + strconv.FormatFloat(c.Score, 'f', -1,
		64) + " " +
		strconv.Itoa(len(c.SampleData)) + " rows: " + strings.Join(names, " ")
}

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"shoal.dev/shoal/bench/detect"
	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// Detect judges proposals for saved real pages by the answers of bench/detect.
type Detect struct {
	Pages string `help:"Directory with the pages, under OWNER/NAME/PATH." required:"" placeholder:"DIR" type:"existingdir"`
	Half  string `help:"Half of the corpus: tune, or held, whose runs are noted in HELD.md." enum:"tune,held" default:"tune"`
}

// Help returns the help text.
func (*Detect) Help() string {
	return `The corpus is a list of public sources and expected answers. bench/detect/README.md describes how to gather its pages. The
halves have no site in common. With less than 90% of a half's pages nothing is judged.

"Right" is the expected list row by row, or the one item of a page. "Broken rows" has all the items, but cut, doubled or
without their links and prices. "Part" has some of the items, "another" none of them.

Example: shoal bench detect --pages pages`
}

// Bounds of the judgement.
const (
	firstFew   = 3 // proposals, one of which should be right
	rightFirst = 0.85
	rightFew   = 0.95
)

// detected is the judgement of one page.
type detected struct {
	first    detect.Judgement
	best     detect.Verdict // among the first few
	next     bool           // the first proposal follows the right next page
	proposed bool           // some pagination was proposed
}

// tally counts the pages of one kind, language or shape.
type tally struct {
	pages    float64
	verdicts [detect.Verdicts]float64
	few      float64
}

// Measure runs the detection over a half of the corpus.
func (m *Detect) Measure(ctx context.Context, on *Bench, report *Report) error {
	entries, err := detect.Corpus()
	if err != nil {
		return err
	}
	detector, err := extract.Compile(model.Recipe{Type: model.Detection})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	s := scores{}
	err = readHalf(ctx, on, "detect", m.Pages, saved.Half(m.Half), entries,
		func(e *detect.Entry) *saved.Source { return &e.Source },
		func(e *detect.Entry, body []byte) {
			result := detectPage(detector, e, body)
			s.add(e, result)
			report.note("%s, %s/%s: %s", e.Site, e.Repository, e.Path, result.first.Verdict)
		})
	if err != nil {
		return err
	}
	return s.tell(report)
}

// detectPage judges the first few proposals for a page. An unreadable page has none.
func detectPage(detector *extract.Extractor, e *detect.Entry, body []byte) detected {
	d := detected{first: detect.Judgement{Verdict: detect.None}, best: detect.None}
	page := extract.Page{URL: e.Address, Asked: e.Address, ContentType: e.ContentType(), Body: body}
	found, err := detector.Extract(page)
	if err != nil {
		return d
	}
	for i, row := range found.Rows[:min(len(found.Rows), firstFew)] {
		var proposal extract.Proposal
		if json.Unmarshal(row, &proposal) != nil {
			continue // the caller would not get it, either
		}
		made := proposed(&proposal, page)
		judged := e.Judge(made.Rows)
		d.best = min(d.best, judged.Verdict)
		if i == 0 {
			d.first = judged
			p := proposal.Scraper.SourceConfig.Pagination
			d.proposed = p != nil && p.Type != model.PaginationNone
			d.next = d.proposed && e.Pagination(made.Next)
		}
	}
	return d
}

// proposed applies a proposal to the page it was made for.
func proposed(p *extract.Proposal, page extract.Page) extract.Result {
	extractor, err := extract.Compile(p.Scraper.Recipe())
	if err != nil {
		return extract.Result{}
	}
	made, err := extractor.Extract(page)
	if err == nil && made.Ask != nil {
		made, err = withoutAnswers(extractor, page, made)
	}
	if err != nil {
		return extract.Result{}
	}
	return made
}

// scores are the judgements of a half.
type scores struct {
	all                              tally
	shapes, kinds, languages         map[string]*tally
	mispriced, paged, next, proposed float64
}

func (s *scores) add(e *detect.Entry, d detected) {
	shape := "list"
	if e.Count == 0 {
		shape = "one item"
	}
	s.all.add(d)
	addTo(&s.shapes, shape, d)
	addTo(&s.kinds, e.Kind, d)
	addTo(&s.languages, e.Language, d)
	if d.first.Mispriced {
		s.mispriced++
	}
	if e.Next == "" {
		return
	}
	s.paged++
	if d.next {
		s.next++
	}
	if d.proposed {
		s.proposed++
	}
}

func addTo(by *map[string]*tally, name string, d detected) {
	if *by == nil {
		*by = map[string]*tally{}
	}
	if (*by)[name] == nil {
		(*by)[name] = &tally{}
	}
	(*by)[name].add(d)
}

func (t *tally) add(d detected) {
	t.pages++
	t.verdicts[d.first.Verdict]++
	if d.best == detect.Right {
		t.few++
	}
}

func (s *scores) tell(report *Report) error {
	columns := []string{"pages", "count"}
	for v := range detect.Verdicts {
		columns = append(columns, v.String()+", %")
	}
	columns = append(columns, "right among three, %")
	table := report.table("First proposal:", columns...)
	s.all.tell(table, "all")
	for _, group := range []map[string]*tally{s.shapes, s.kinds, s.languages} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			group[name].tell(table, name)
		}
	}
	next := report.table("Pages with a next page:", "pages", "count", "next page found, %",
		"some pagination proposed, %")
	next.add("all", s.paged, percent(s.next, s.paged), percent(s.proposed, s.paged))
	report.atMost("not right at the first proposal", 100-percent(s.all.verdicts[detect.Right],
		s.all.pages), 100*(1-rightFirst), "% of the pages")
	report.atMost("not right among the first three", 100-percent(s.all.few, s.all.pages),
		100*(1-rightFew), "% of the pages")
	report.atMost("one product's price on another", s.mispriced, 0, "pages")
	again, err := agreement()
	if err != nil {
		return err
	}
	report.note("%d pages were read twice: the readings, the first as corrected since, agree on a "+
		"list or none on %d, on the items on %d, on the next page on %d", again.Pages, again.Lists,
		again.Items, again.Next)
	return nil
}

func agreement() (detect.Agreement, error) {
	first, err := detect.Corpus()
	if err != nil {
		return detect.Agreement{}, err
	}
	again, err := detect.Second()
	if err != nil {
		return detect.Agreement{}, err
	}
	return detect.Agree(first, again), nil
}

func (t *tally) tell(table *Table, name string) {
	figures := []float64{t.pages}
	for _, n := range t.verdicts {
		figures = append(figures, percent(n, t.pages))
	}
	table.add(name, append(figures, percent(t.few, t.pages))...)
}

// percent is NaN if of is 0.
func percent(part, of float64) float64 {
	if of == 0 {
		return math.NaN()
	}
	return 100 * part / of
}

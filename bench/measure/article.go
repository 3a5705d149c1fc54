package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"shoal.dev/shoal/bench/article"
	"shoal.dev/shoal/bench/detect"
	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// Article judges what AI_CONF reads from saved articles without a language model.
type Article struct {
	Pages string `help:"Directory with the pages, under OWNER/NAME/PATH." required:"" placeholder:"DIR" type:"existingdir"`
	Half  string `help:"Half of the articles, or part of the further ones." enum:"tune,held,work,check" default:"tune"`
}

// Help returns the help text.
func (*Article) Help() string {
	return `AI_CONF reads saved articles with a schema of title, author, datePublished and articleBody, without a language model. The
corpus lists public sources with the expected answers of their collection. bench/article/README.md describes how to gather
the pages, and when an article counts as right. The halves have no site in common. With less than 90% of a half's pages
nothing is judged. Further articles, again of other sites, are in the parts work and check.

Pages with a list, those of 'shoal bench detect', are read as one product. They should give no row: the title of a list
with the price of its first item is not a product.

Example: shoal bench article --pages pages`
}

// rightArticles is the required share of right articles: 54 of 60.
const rightArticles = 0.9

// productSchema is the schema that pages with a list are read with.
const productSchema = `{"type":"object","properties":{"title":{"type":"string"},` +
	`"price":{"type":"number"}},"required":["title"]}`

// Measure reads a half of the articles, and the lists of that half.
func (m *Article) Measure(ctx context.Context, on *Bench, report *Report) error {
	half, entries, err := m.articles()
	if err != nil {
		return err
	}
	reader, err := extract.Compile(model.Recipe{Type: model.AIConf,
		Schema: []byte(article.Schema)})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var pages, title, author, named, date, text, right float64
	err = readHalf(ctx, on, "article", m.Pages, half, entries,
		func(e *article.Entry) *saved.Source { return &e.Source },
		func(e *article.Entry, body []byte) {
			var got article.Judgement
			rows := readPage(reader, &e.Source, body)
			if len(rows) == 1 {
				got = e.Judge(rows[0])
			}
			pages++
			title += one(got.Title)
			date += one(got.Date)
			text += one(got.Text)
			right += one(got.Right())
			if len(e.Authors) > 0 {
				named++
				author += one(got.Author)
			}
			report.note("%s, %s: %d rows, %+v", e.Site, e.Path, len(rows), got)
		})
	if err != nil {
		return err
	}
	table := report.table("Articles:", "half", "count", "right, %", "title, %", "author, %",
		"date, %", "text, %")
	table.add(m.Half, pages, percent(right, pages), percent(title, pages),
		percent(author, named), percent(date, pages), percent(text, pages))
	report.atMost("articles not right", 100-percent(right, pages), 100*(1-rightArticles), "%")
	if string(half) != m.Half {
		return nil // further articles have no lists
	}
	return m.lists(ctx, on, report)
}

// articles returns the articles of a half or a part, and the half that they are in.
func (m *Article) articles() (saved.Half, []article.Entry, error) {
	switch half := saved.Half(m.Half); half {
	case saved.Work, saved.Check:
		entries, err := article.Further(half)
		return saved.Tune, entries, err
	default:
		entries, err := article.Corpus()
		return half, entries, err
	}
}

// lists reads pages with a list as if they had one product.
func (m *Article) lists(ctx context.Context, on *Bench, report *Report) error {
	entries, err := detect.Corpus()
	if err != nil {
		return err
	}
	reader, err := extract.Compile(model.Recipe{Type: model.AIConf,
		Schema: []byte(productSchema)})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var pages, alone, priced float64
	err = readHalf(ctx, on, "detect", m.Pages, saved.Half(m.Half), entries,
		func(e *detect.Entry) *saved.Source { return &e.Source },
		func(e *detect.Entry, body []byte) {
			if e.Count == 0 {
				return
			}
			pages++
			if rows := readPage(reader, &e.Source, body); len(rows) == 1 {
				alone++
				priced += one(hasPrice(rows[0]))
				report.note("%s, %s: %.200s", e.Site, e.Path, rows[0])
			}
		})
	if err != nil {
		return err
	}
	table := report.table("Pages with a list, read as one product:", "half", "count",
		"one row, %", "one row with a price, %")
	table.add(m.Half, pages, percent(alone, pages), percent(priced, pages))
	report.atMost("lists that became a product with a price", priced, 0, "pages")
	return nil
}

func hasPrice(row []byte) bool {
	var thing struct{ Price *float64 }
	return json.Unmarshal(row, &thing) == nil && thing.Price != nil
}

func one(of bool) float64 {
	if of {
		return 1
	}
	return 0
}

// readPage returns a page's rows without an answer from a language model. An unreadable page has
// none.
func readPage(reader *extract.Extractor, source *saved.Source, body []byte) [][]byte {
	body, err := inUTF8(body, source.ContentType())
	if err != nil {
		return nil
	}
	page := extract.Page{URL: source.Address, Asked: source.Address,
		ContentType: source.ContentType(), Body: body}
	got, err := reader.Extract(page)
	if err == nil {
		got, err = withoutAnswers(reader, page, got)
	}
	if err != nil {
		return nil
	}
	return got.Rows
}

// inUTF8 converts a page to UTF-8, like the fetcher.
func inUTF8(body []byte, contentType string) ([]byte, error) {
	if utf8.Valid(body) {
		return body, nil
	}
	decoded, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return nil, fmt.Errorf("charset: %w", err)
	}
	if body, err = io.ReadAll(decoded); err != nil {
		return nil, fmt.Errorf("charset: %w", err)
	}
	return body, nil
}

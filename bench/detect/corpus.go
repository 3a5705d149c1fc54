// Package detect owns the judgement of detection on saved real pages. It has the corpus of pages
// with the answers that people expect, and compares proposals for a page with its answer. It owns
// no pages: they stay in the public collections that README.md names. It does not run the
// detection, and does not know how it works.
package detect

import (
	_ "embed" // the corpus

	"shoal.dev/shoal/bench/saved"
)

// Entry is one page of the corpus: where it is, and the expected answer.
type Entry struct {
	saved.Source
	Kind     string `json:"kind"`     // product, search, category, news …
	Language string `json:"language"` // ISO 639-1
	Answer
}

// Answer is what a person wants from a page: a list or one item. If Answer has neither, no proposal
// is right.
type Answer struct {
	// Count is the number of items in the main list, 0 if the page has none.
	Count int `json:"count,omitempty"`
	// Items are the first, second and last item of the list, or the page's only item. A list of two
	// has both.
	Items []Item `json:"items,omitempty"`
	// Next is the absolute address of the next page, "" if none is linked.
	Next string `json:"next,omitempty"`
}

// Item is what identifies one item, as written on the page. Empty members are not judged.
type Item struct {
	Title     string            `json:"title"`
	Link      string            `json:"link,omitempty"` // absolute
	Price     string            `json:"price,omitempty"`
	ListPrice string            `json:"listPrice,omitempty"` // the regular price of an item on sale
	Fields    map[string]string `json:"fields,omitempty"`
}

//go:embed corpus.jsonl
var corpus []byte

//go:embed second.jsonl
var second []byte

// Corpus returns every page with its answer.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

// Second returns answers for a tenth of the pages, made without looking at the first ones.
func Second() ([]Entry, error) { return saved.Read[Entry]("second.jsonl", second) }

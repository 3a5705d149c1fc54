// Package detect owns the judgement of detection on saved real pages. It has the corpus of pages
// with the answers that people expect, and compares what is proposed for a page with its answer. It
// owns no pages: they stay in the public collections that README.md names. It does not run the
// detection, and knows nothing of how it works.
package detect

import (
	_ "embed" // the corpus

	"shoal.dev/shoal/bench/saved"
)

// Entry is one page of the corpus: where it is, and the answer that people expect.
type Entry struct {
	saved.Source
	Kind     string `json:"kind"`     // product, search, category, news …
	Language string `json:"language"` // ISO 639-1
	Answer
}

// Answer is what a person wants of a page. A page has a list or one item; with neither, no proposal
// is right.
type Answer struct {
	// Count is the number of items of the main list, 0 where the page has none.
	Count int `json:"count,omitempty"`
	// Items are the first, the second and the last of the list, or the one item of the page. A
	// list of two has both.
	Items []Item `json:"items,omitempty"`
	// Next is the absolute address of the next page, "" where none is linked.
	Next string `json:"next,omitempty"`
}

// Item is what identifies one item, as the page writes it. Members that are "" are not judged.
type Item struct {
	Title     string            `json:"title"`
	Link      string            `json:"link,omitempty"` // absolute
	Price     string            `json:"price,omitempty"`
	ListPrice string            `json:"listPrice,omitempty"` // the regular one of an item on sale
	Fields    map[string]string `json:"fields,omitempty"`
}

//go:embed corpus.jsonl
var corpus []byte

//go:embed second.jsonl
var second []byte

// Corpus is every page with its answer.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

// Second is the answers of a tenth of the pages, given once more without sight of the first.
func Second() ([]Entry, error) { return saved.Read[Entry]("second.jsonl", second) }

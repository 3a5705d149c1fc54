// Package article owns the judgement of articles that are read without selectors. It has a list of
// saved articles with what their collection says of them, and compares rows with it. It owns no
// pages, and does not read them.
package article

import (
	_ "embed" // the corpus
	"slices"

	"shoal.dev/shoal/bench/saved"
)

// Entry is one article: where it is, and what its collection says of it.
type Entry struct {
	saved.Source
	Answer
}

// Answer is what an article is.
type Answer struct {
	Title   string   `json:"title"`
	Authors []string `json:"authors,omitempty"` // none where the page names nobody
	Date    string   `json:"date"`              // of publication: 2006-01-02; "" where the page has none
	With    []string `json:"with"`              // parts of its text
	Without []string `json:"without"`           // parts of the page that are none of its text
}

//go:embed corpus.jsonl
var corpus []byte

// Corpus is every article.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

//go:embed further.jsonl
var further []byte

// Further is articles of sites of the half tune that Corpus has none of. Their answers come from
// readers that somebody wrote for each site. The part Check is not looked at.
func Further(part saved.Half) ([]Entry, error) {
	entries, err := saved.Read[Entry]("further.jsonl", further)
	return slices.DeleteFunc(entries,
		func(e Entry) bool { return saved.PartOf(e.Site) != part }), err
}

// Package article owns the judgement of articles that are read without selectors. It has a list of
// saved articles with their collection's answers, and compares rows with them. It owns no pages,
// and does not read them.
package article

import (
	_ "embed" // the corpus
	"slices"

	"shoal.dev/shoal/bench/saved"
)

// Entry is one article: where it is, and its collection's answer.
type Entry struct {
	saved.Source
	Answer
}

// Answer is the correct content of an article.
type Answer struct {
	Title   string   `json:"title"`
	Authors []string `json:"authors,omitempty"` // none if the page names nobody
	Date    string   `json:"date"`              // of publication: 2006-01-02; "" if it has none
	With    []string `json:"with"`              // parts of its text
	Without []string `json:"without"`           // parts of the page that are not in its text
}

//go:embed corpus.jsonl
var corpus []byte

// Corpus returns every article.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

//go:embed further.jsonl
var further []byte

// Further returns articles of the half Tune from sites that are not in Corpus. Their answers come
// from readers written for each site. Nobody looks at the part Check.
func Further(part saved.Half) ([]Entry, error) {
	entries, err := saved.Read[Entry]("further.jsonl", further)
	return slices.DeleteFunc(entries,
		func(e Entry) bool { return saved.PartOf(e.Site) != part }), err
}

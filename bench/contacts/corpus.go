// Package contacts owns the judgement of website contacts on saved real pages. It has a list of
// pages with the addresses that each publishes, and compares answers with it. It owns no pages, and
// does not read them. It holds no e-mail addresses either: people's addresses stay in the pages.
package contacts

import (
	"crypto/sha256"
	_ "embed" // the corpus
	"encoding/hex"
	"strings"

	"shoal.dev/shoal/bench/saved"
)

// Entry is one page of the corpus: where it is, and what a careful person would note from it.
type Entry struct {
	saved.Source
	Language string `json:"language,omitempty"` // as the page states it, "" if it does not
	Answer
}

// Answer is what a page publishes. Addresses are hashes.
type Answer struct {
	// Own are the addresses of the site's operators, which a visitor can read or click.
	Own []string `json:"own,omitempty"`
	// May are addresses that count as neither missed nor wrong. The page has them only in its data,
	// or a careful person would doubt whose they are.
	May []string `json:"may,omitempty"`
	// Protected says that the page hides an address behind a protection.
	Protected bool `json:"protected,omitempty"`
}

// hashLength is the number of digits of a hash.
const hashLength = 16

// Hash returns an address in the form of the corpus.
func Hash(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return hex.EncodeToString(sum[:])[:hashLength]
}

//go:embed corpus.jsonl
var corpus []byte

// Corpus returns every page with its answer.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

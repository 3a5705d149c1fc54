// Package contacts owns the judgement of website contacts on saved real pages. It has a list of
// pages, with the addresses that each publishes, and compares answers with it. It owns no pages,
// and does not read them. It has no e-mail address either: those of people stay in the pages.
package contacts

import (
	"crypto/sha256"
	_ "embed" // the corpus
	"encoding/hex"
	"strings"

	"shoal.dev/shoal/bench/saved"
)

// Entry is one page of the corpus: where it is, and what a careful person would note down of it.
type Entry struct {
	saved.Source
	Language string `json:"language,omitempty"` // as the page says, "" where it does not
	Answer
}

// Answer is what a page publishes. Addresses are hashes.
type Answer struct {
	// Own are the addresses of those who run the site, which a visitor can read or click.
	Own []string `json:"own,omitempty"`
	// May are addresses that are neither missed nor wrong. The page has them in its data alone, or
	// a careful person would doubt whose they are.
	May []string `json:"may,omitempty"`
	// Protected says that the page has an address behind a protection.
	Protected bool `json:"protected,omitempty"`
}

// hashLength is the digits of a hash.
const hashLength = 16

// Hash is how the corpus writes an address.
func Hash(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return hex.EncodeToString(sum[:])[:hashLength]
}

//go:embed corpus.jsonl
var corpus []byte

// Corpus is every page with its answer.
func Corpus() ([]Entry, error) { return saved.Read[Entry]("corpus.jsonl", corpus) }

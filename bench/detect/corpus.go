// Package detect owns the judgement of detection on saved real pages. It has the corpus of pages
// with the answers that people expect, and compares what is proposed for a page with its answer. It
// owns no pages: they stay in the public collections that README.md names. It does not run the
// detection, and knows nothing of how it works.
package detect

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed" // the corpus
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Entry is one page of the corpus: where it is, and the answer that people expect.
type Entry struct {
	Repository string `json:"repository"` // owner/name on GitHub
	Commit     string `json:"commit"`
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`            // of the file, in hexadecimal digits
	Address    string `json:"address"`           // of the page
	Charset    string `json:"charset,omitempty"` // as its server named it; "" where it did not
	Site       string `json:"site"`              // registrable domain
	Kind       string `json:"kind"`              // product, search, category, news …
	Language   string `json:"language"`          // ISO 639-1
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

// Half is a part of the corpus. No site is in both.
type Half string

// The halves: one to improve the detection by, one to judge it by.
const (
	Tune Half = "tune"
	Held Half = "held"
)

// HalfOf is the half of a site, for good.
func HalfOf(site string) Half {
	if sum := sha256.Sum256([]byte(site)); sum[0]&1 == 0 {
		return Tune
	}
	return Held
}

//go:embed corpus.jsonl
var corpus []byte

//go:embed second.jsonl
var second []byte

// Corpus is every page with its answer.
func Corpus() ([]Entry, error) { return read("corpus.jsonl", corpus) }

// Second is the answers of a tenth of the pages, given once more without sight of the first.
func Second() ([]Entry, error) { return read("second.jsonl", second) }

// maxLine is the most bytes of an entry.
const maxLine = 64 << 10

func read(name string, lines []byte) ([]Entry, error) {
	var entries []Entry
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.DisallowUnknownFields()
		var e Entry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, len(entries)+1, err)
	}
	return entries, nil
}

// maxPage is the most bytes of a page.
const maxPage = 16 << 20

// Load reads the page from a directory that has it under repository and path. A page that is not
// there, or is another one by its hash, is not found. Errors: the file is there and cannot be read.
func (e *Entry) Load(dir string) (body []byte, found bool, err error) {
	path := filepath.Join(dir, filepath.FromSlash(e.Repository), filepath.FromSlash(e.Path))
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err) || err == nil && (info.IsDir() || info.Size() > maxPage):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("page: %w", err)
	}
	if body, err = os.ReadFile(path); err != nil {
		return nil, false, fmt.Errorf("page: %w", err)
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]) == e.SHA256, nil
}

// ContentType is the header that the page is read under.
func (e *Entry) ContentType() string {
	if e.Charset == "" {
		return "text/html"
	}
	return "text/html; charset=" + e.Charset
}

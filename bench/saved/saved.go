// Package saved owns lists of saved real pages. They say where in the public collections each page
// is, its hash, and the half of a corpus that it belongs to. It owns no pages, and no answers:
// those belong to the lists.
package saved

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Source says where a saved page is.
type Source struct {
	Repository string `json:"repository"` // owner/name on GitHub
	Commit     string `json:"commit"`
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`            // of the file, in hexadecimal digits
	Address    string `json:"address"`           // of the page
	Charset    string `json:"charset,omitempty"` // as its server named it; "" if it did not
	Site       string `json:"site"`              // registrable domain
}

// Half is a part of the corpus. No site is in both.
type Half string

// The halves: one to improve the product by, one to judge it by.
const (
	Tune Half = "tune"
	Held Half = "held"
)

// HalfOf returns the half of a site; it never changes.
func HalfOf(site string) Half {
	if sum := sha256.Sum256([]byte(site)); sum[0]&1 == 0 {
		return Tune
	}
	return Held
}

// The parts of further pages in the half Tune: one to improve the product by, one to check it by.
const (
	Work  Half = "work"
	Check Half = "check"
)

// PartOf returns the part of a site in the half Tune; it never changes.
func PartOf(site string) Half {
	if sum := sha256.Sum256([]byte(site)); sum[1]&1 == 0 {
		return Work
	}
	return Check
}

// maxLine bounds an entry, in bytes.
const maxLine = 64 << 10

// Read reads a list of entries, one JSON object a line. name is for errors.
func Read[E any](name string, lines []byte) ([]E, error) {
	var entries []E
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.DisallowUnknownFields()
		var e E
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

// maxPage bounds a page, in bytes.
const maxPage = 16 << 20

// Load reads the page from a directory that has it under repository and path. found is false if the
// page is missing or has another hash. It unpacks a gzip file. Errors: the file exists and cannot
// be read.
func (s *Source) Load(dir string) (body []byte, found bool, err error) {
	path := filepath.Join(dir, filepath.FromSlash(s.Repository), filepath.FromSlash(s.Path))
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
	if hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, false, nil
	}
	if strings.HasSuffix(s.Path, ".gz") {
		if body, err = unpack(body); err != nil {
			return nil, false, fmt.Errorf("page %s: %w", s.Path, err)
		}
	}
	return body, true, nil
}

// unpack unpacks a gzip file, up to maxPage.
func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(reader, maxPage))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return body, nil
}

// ContentType is the page's Content-Type header.
func (s *Source) ContentType() string {
	if s.Charset == "" {
		return "text/html"
	}
	return "text/html; charset=" + s.Charset
}

// Package sitemap parses sitemaps: addresses with their images, and other sitemaps. It reads
// sitemaps.org's XML with its index, image, news and language extensions, RSS, Atom, and text with
// one address per line. Any of them may be compressed. It reads as bytes come, in constant memory.
// It resolves no entities, opens nothing, and trusts no length. Its caller fetches files and
// decides which addresses to take.
package sitemap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"shoal.dev/shoal/pkg/address"
)

// Bounds of one file.
const (
	// MaxBytes is the greatest size of a file, as sent and as decompressed (sitemaps.org).
	MaxBytes = 52_428_800
	// MaxTitle is how many bytes of an image's title are kept.
	MaxTitle = 1_000
	// maxAlternates is how many addresses in other languages one entry may name.
	maxAlternates = 200
	// maxStray is how many lines without an address may come before the first address.
	maxStray = 20
	// headBytes is how many bytes decide the form and the encoding of a file.
	headBytes = 4 << 10
)

// What Read may fail with, besides the errors of its reader.
var (
	// ErrNotSitemap says that a file is something else, such as a page.
	ErrNotSitemap = errors.New("sitemap: not a sitemap")
	// ErrBroken says that a file breaks off or is malformed.
	ErrBroken = errors.New("sitemap: malformed")
	// ErrTooLarge says that a file is longer than MaxBytes.
	ErrTooLarge = fmt.Errorf("sitemap: more than %d bytes", MaxBytes)
)

// Form is the form of a file.
type Form string

// The forms of files.
const (
	Empty Form = "empty" // only blanks
	URLs  Form = "urlset"
	Index Form = "sitemapindex"
	RSS   Form = "rss"
	Atom  Form = "atom"
	Text  Form = "text"
)

// Entry is an address in a file.
type Entry struct {
	URL        string // as written, at most address.Longest bytes
	Image      string // the first image's address, as written; "": none
	ImageTitle string // at most MaxTitle bytes; "": none
	Sitemap    bool   // it is another sitemap
}

// Read reads a file and calls visit with each entry in order, until that returns false. charset is
// the answer's Content-Type, "" if absent. Entries visited before an error remain valid.
func Read(from io.Reader, charset string, visit func(Entry) bool) (Form, error) {
	sent := &bounded{from: from, left: MaxBytes}
	in := bufio.NewReaderSize(sent, 4*headBytes)
	unpacked := sent
	if head, _ := in.Peek(2); string(head) == "\x1f\x8b" {
		packed, err := gzip.NewReader(in)
		if err != nil {
			return "", readFailure(err, sent)
		}
		unpacked = &bounded{from: packed, left: MaxBytes}
		in = bufio.NewReaderSize(unpacked, 4*headBytes)
	}
	in = decode(in, charset)
	form, err := readForm(in, visit)
	switch {
	case err == nil, errors.Is(err, errEnough):
		return form, nil
	case errors.Is(err, io.EOF):
		return form, fmt.Errorf("%w: it breaks off", ErrBroken)
	}
	return form, readFailure(err, sent, unpacked)
}

// readFailure is why reading failed. A reader's error precedes that of the decompressor.
func readFailure(err error, readers ...*bounded) error {
	for _, r := range readers {
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			err = r.err
			break
		}
	}
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return err
}

// errEnough says that the caller wants no more.
var errEnough = errors.New("enough")

// readForm tells text from XML by its first character.
func readForm(in *bufio.Reader, visit func(Entry) bool) (Form, error) {
	for {
		c, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return Empty, nil
		case err != nil:
			return "", err
		case isBlank(c):
			continue
		}
		if err := in.UnreadByte(); err != nil {
			return "", err
		}
		if c == '<' {
			d := document{in: in, visit: visit}
			err := d.read()
			return d.form, err
		}
		return readText(in, visit)
	}
}

// readText reads one address per line, and skips other lines.
func readText(in *bufio.Reader, visit func(Entry) bool) (form Form, err error) {
	found, stray := 0, 0
	var line []byte
	for ended := false; !ended; {
		c, err := in.ReadByte()
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return Text, err
		}
		if !ended && c != '\n' && c != '\r' {
			if len(line) <= address.Longest {
				line = append(line, c)
			}
			continue
		}
		text := strings.TrimSpace(string(line))
		long := len(line) > address.Longest
		line = line[:0]
		switch {
		case text == "":
		case !long && isWeb(text):
			found++
			if !visit(Entry{URL: mended(text)}) {
				return Text, errEnough
			}
		default:
			if stray++; found == 0 && stray > maxStray {
				return "", ErrNotSitemap
			}
		}
	}
	if found == 0 && stray > 0 {
		return "", ErrNotSitemap
	}
	return Text, nil
}

// isWeb says whether a text begins like a web address.
func isWeb(text string) bool {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(text) > len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// mended is a text as valid UTF-8.
func mended(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// shortened is at most this many bytes of a text, in whole characters.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// bounded passes on at most left bytes. err is what reading ended with.
type bounded struct {
	from io.Reader
	left int
	err  error
}

// Read implements io.Reader. It reads one byte more, to tell a longer file from one that ends here.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	p = p[:min(len(p), b.left+1)]
	n, err := b.from.Read(p)
	if n > b.left {
		n, err = b.left, ErrTooLarge
	}
	b.left -= n
	b.err = err
	return n, err
}

package upload

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// Bounds of a spreadsheet's parts.
const (
	maxUnzipped = 2 << 30   // bytes of one part, unpacked
	maxToken    = 256 << 10 // bytes of one tag or text; a cell's text has 32 KB, escaped more
	maxDepth    = 32        // nesting of elements; a sheet has 6
	maxShared   = 4 << 20   // shared texts
	maxParts    = 10_000
	maxCharts   = 100 // before the first sheet with cells
)

// While one spreadsheet is read, others wait. So a part must not continue endlessly without values.
// Its bytes use up room, and each tag or text perToken more: about the time that they take.
// maxEmpty is room for some 5,000,000 empty rows or cells, more than programs write. Each value
// adds room for itself and for some empty ones.
const (
	maxEmpty = 200 << 20
	perToken = 16
	perValue = 2_000
	perByte  = 8 // of a value, whose characters may be escaped
)

// entries counts the entries of a zip archive's directory by their signature. The zip reader keeps
// them all in memory.
type entries struct {
	count int
	last  []byte // may be the start of a signature
}

// Write implements io.Writer.
func (e *entries) Write(p []byte) (int, error) {
	begin := []byte("PK\x01\x02")
	e.last = append(e.last, p...)
	e.count += bytes.Count(e.last, begin)
	e.last = append(e.last[:0], e.last[max(0, len(e.last)-len(begin)+1):]...)
	return len(p), nil
}

// part is one XML document of a spreadsheet, read sequentially.
type part struct {
	body    io.ReadCloser
	bytes   *metered
	decoder *xml.Decoder
	depth   int
	left    int // room left for what has no value
}

// metered reads a part, but between two tokens no more than the longest token.
type metered struct {
	*bufio.Reader
	token int
}

var (
	errToken = errors.New("a text or a tag in it is too long")
	errEmpty = errors.New("too many rows or cells before it have no value")
)

// ReadByte implements io.ByteReader. The decoder reads only through it.
func (m *metered) ReadByte() (byte, error) {
	if m.token++; m.token > maxToken {
		return 0, errToken
	}
	return m.Reader.ReadByte()
}

// partName returns the name of a part. Some programs write it with backslashes.
func partName(file *zip.File) string {
	return strings.TrimPrefix(strings.ReplaceAll(file.Name, `\`, "/"), "/")
}

// openPart opens the part with a name.
func openPart(archive *zip.Reader, name string) (*part, error) {
	for _, file := range archive.File {
		if !strings.EqualFold(partName(file), name) {
			continue
		}
		body, err := file.Open()
		if err != nil {
			return nil, notSheet("%.200s", err)
		}
		return newPart(body), nil
	}
	return nil, notSheet("it has no %.100q", name)
}

// newPart reads the text of a part: UTF-8, or UTF-16, which mobile programs write.
func newPart(body io.ReadCloser) *part {
	limited := bufio.NewReaderSize(io.LimitReader(body, maxUnzipped), 64<<10)
	order := findOrder(limited)
	if order != nil {
		limited = bufio.NewReaderSize(order.NewDecoder().Reader(limited), 64<<10)
	}
	p := &part{body: body, left: maxEmpty, bytes: &metered{Reader: limited}}
	p.decoder = xml.NewDecoder(p.bytes)
	if order != nil { // the part still says that it is UTF-16
		p.decoder.CharsetReader = func(_ string, decoded io.Reader) (io.Reader, error) {
			return decoded, nil
		}
	}
	return p
}

// findOrder returns the order of UTF-16's bytes by the mark or the tag with which a part begins;
// nil: it is not UTF-16.
func findOrder(part *bufio.Reader) encoding.Encoding {
	begin, _ := part.Peek(2) // a shorter part is no document, which the decoder tells
	switch string(begin) {
	case "\xfe\xff", "\x00<":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "\xff\xfe", "<\x00":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	}
	return nil
}

// Close releases the part.
func (p *part) Close() error { return p.body.Close() }

// next returns the next token, which is valid until the next call.
func (p *part) next() (xml.Token, error) {
	if p.left -= perToken + p.bytes.token; p.left < 0 {
		return nil, errEmpty
	}
	p.bytes.token = 0
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token.(type) {
	case xml.StartElement:
		if p.depth++; p.depth > maxDepth {
			return nil, errors.New("its elements are too deep within one another")
		}
	case xml.EndElement:
		p.depth--
	}
	return token, nil
}

// found adds the room that a value brings.
func (p *part) found(text string) {
	if text != "" {
		p.left += perValue + perByte*len(text)
	}
}

// find reads up to the next element with a name; io.EOF: there is none.
func (p *part) find(name string) (xml.StartElement, error) {
	for {
		token, err := p.next()
		if err != nil {
			return xml.StartElement{}, err
		}
		if start, begun := token.(xml.StartElement); begun && start.Name.Local == name {
			return start, nil
		}
	}
}

// escapedCell is the length of the longest cell with every character escaped.
const escapedCell = len("_x000D_") * MaxCell

// content returns the text of an element that has begun, up to its end. A text too long for a cell
// is cut, but stays too long.
func (p *part) content() (string, error) {
	var text []byte
	for depth := p.depth; ; {
		token, err := p.next()
		if err != nil {
			return "", err
		}
		if data, is := token.(xml.CharData); is && len(text) <= escapedCell {
			text = append(text, data...)
		}
		if _, ended := token.(xml.EndElement); ended && p.depth < depth {
			return string(text), nil
		}
	}
}

// runs returns the text of an element that has begun, from its t elements. Phonetic hints are not
// part of it.
func (p *part) runs() (string, error) {
	var text strings.Builder
	for depth := p.depth; ; {
		token, err := p.next()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.EndElement:
			if p.depth < depth {
				return text.String(), nil
			}
		case xml.StartElement:
			part, err := "", error(nil)
			switch t.Name.Local {
			case "t":
				part, err = p.content()
			case "rPh":
				_, err = p.content()
			}
			if err != nil {
				return "", err
			}
			if text.Len() <= MaxCell {
				text.WriteString(unescape(part))
			}
		}
	}
}

const (
	officeDocument = "/officeDocument" // ends the type of a relation to the workbook
	sharedStrings  = "/sharedStrings"  // ends that of one to the shared texts
	usualWorkbook  = "xl/workbook.xml"
	usualTexts     = "sharedStrings.xml"
)

// findParts returns the names of the part with the first sheet that has cells, and of the part with
// the texts that cells share. The latter is empty if nothing names it.
func findParts(archive *zip.Reader) (sheet, texts string, err error) {
	workbook, room := usualWorkbook, maxEmpty
	named, err := related(archive, "_rels/.rels", &room, func(r xml.StartElement) bool {
		return strings.HasSuffix(attribute(r, "Type"), officeDocument)
	})
	if target := attribute(named, "Target"); err == nil && target != "" {
		workbook = resolve("", target)
	}
	book, err := openPart(archive, workbook)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = book.Close() }() // it was only read
	folder := path.Dir(workbook)
	relations := path.Join(folder, "_rels", path.Base(workbook)+".rels")
	for range maxCharts + 1 {
		sheet, err := book.find("sheet")
		if errors.Is(err, io.EOF) {
			return "", "", refuse("the spreadsheet has no sheet with cells")
		}
		if err != nil {
			return "", "", notSheet("%.200s", err)
		}
		id := attribute(sheet, "id")
		named, err := related(archive, relations, &room,
			func(r xml.StartElement) bool { return attribute(r, "Id") == id })
		if err != nil {
			return "", "", err
		}
		target := attribute(named, "Target")
		if target == "" {
			return "", "", refuse("the first sheet cannot be found")
		}
		if !isChart(attribute(named, "Type")) {
			shared, err := related(archive, relations, &room, func(r xml.StartElement) bool {
				return strings.HasSuffix(attribute(r, "Type"), sharedStrings)
			})
			if texts = attribute(shared, "Target"); texts != "" {
				texts = resolve(folder, texts)
			}
			return resolve(folder, target), texts, err
		}
	}
	return "", "", refuse("more than %d charts and macros precede the first sheet", maxCharts)
}

// isChart reports whether a sheet's type of relation is that of a chart, a dialog or a macro.
// Programs put a new chart before the sheet with its values.
func isChart(relation string) bool {
	kind := strings.ToLower(path.Base(relation))
	return strings.HasSuffix(kind, "sheet") && kind != "worksheet"
}

// resolve returns a part's name, relative to the folder of the part that names it.
func resolve(folder, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return strings.TrimPrefix(path.Join(folder, target), "/")
}

// related returns a part's first wanted relation. It is empty if there is none. All readings of
// relations have the same room, in unpacked bytes.
func related(archive *zip.Reader, name string, room *int, want func(xml.StartElement) bool) (
	relation xml.StartElement, err error) {
	p, err := openPart(archive, name)
	if err != nil {
		return relation, err
	}
	p.left = *room
	defer func() {
		*room = p.left
		_ = p.Close() // it was only read
	}()
	for range maxParts {
		r, err := p.find("Relationship")
		if errors.Is(err, io.EOF) {
			return relation, nil
		}
		if err != nil {
			return relation, notSheet("%.200s", err)
		}
		if want(r) {
			return r, nil
		}
	}
	return relation, refuse("the spreadsheet has more than %d parts", maxParts)
}

// shared holds the shared texts of cells. The texts and their ends are on disk.
type shared struct {
	texts, ends *os.File // nil: no texts
	count, most int
	buffer      []byte
}

// readShared copies the shared texts of a spreadsheet to a directory: the part that is named, or
// one with the usual name. Many spreadsheets have none.
func readShared(archive *zip.Reader, named, dir string) (_ *shared, err error) {
	s := &shared{most: maxShared}
	name := ""
	for _, file := range archive.File {
		at := partName(file)
		if strings.EqualFold(at, named) ||
			name == "" && strings.EqualFold(path.Base(at), usualTexts) {
			name = at
		}
	}
	if name == "" {
		return s, nil
	}
	defer func() {
		if err != nil {
			_ = s.Close() // nothing was read from it
		}
	}()
	p, err := openPart(archive, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }() // it was only read
	for _, file := range []**os.File{&s.texts, &s.ends} {
		if *file, err = nameless(dir); err != nil {
			return nil, fmt.Errorf("copy a spreadsheet's texts: %w", err)
		}
	}
	return s, s.fill(p)
}

func (s *shared) fill(p *part) error {
	texts, ends := bufio.NewWriter(s.texts), bufio.NewWriter(s.ends)
	end := uint64(0)
	for ; ; s.count++ {
		_, err := p.find("si")
		if errors.Is(err, io.EOF) {
			break
		}
		var text string
		if err == nil {
			text, err = p.runs()
		}
		if err != nil {
			return refuse("the texts of the spreadsheet cannot be read: %.200s", endedEarly(err))
		}
		if s.count == s.most {
			return refuse("the spreadsheet has more than %d texts that cells share", s.most)
		}
		p.found(text)
		end += uint64(len(text))
		_, err = texts.WriteString(text)
		_, also := ends.Write(binary.BigEndian.AppendUint64(nil, end))
		if err = errors.Join(err, also); err != nil {
			return fmt.Errorf("copy a spreadsheet's texts: %w", err)
		}
	}
	if err := errors.Join(texts.Flush(), ends.Flush()); err != nil {
		return fmt.Errorf("copy a spreadsheet's texts: %w", err)
	}
	return nil
}

// text returns the text numbered at. If there is none, it returns a refusal.
func (s *shared) text(at int) (string, error) {
	if at < 0 || at >= s.count {
		return "", refuse("there is no text of the number %d", at)
	}
	var place [16]byte // ends of the previous text and of this one
	into, from := place[:], int64(at-1)*8
	if at == 0 {
		into, from = place[8:], 0
	}
	if _, err := s.ends.ReadAt(into, from); err != nil {
		return "", fmt.Errorf("find a shared text: %w", err)
	}
	begin := binary.BigEndian.Uint64(place[:8])
	length := int(binary.BigEndian.Uint64(place[8:]) - begin)
	if cap(s.buffer) < length {
		s.buffer = make([]byte, length)
	}
	s.buffer = s.buffer[:length]
	if _, err := s.texts.ReadAt(s.buffer, int64(begin)); err != nil {
		return "", fmt.Errorf("read a shared text: %w", err)
	}
	return string(s.buffer), nil
}

// Close releases the files of the texts.
func (s *shared) Close() (err error) {
	for _, file := range []*os.File{s.texts, s.ends} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

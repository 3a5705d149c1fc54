package operation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/fault"
)

// maxItem bounds each item of a JSON body whose items come one by one, and each other member, in
// bytes.
const maxItem = 256 << 10

// splitting parses a JSON body as it comes. It checks the items of one member and passes them on as
// lines of JSON; it keeps all else. Its memory is bounded whatever the length of the body.
type splitting struct {
	shapes  shapes
	field   *field // the member with the items
	invalid fault.Code

	at   string       // the member or item that is being read, "" between them
	rest bytes.Buffer // the body without the items
	hash *xxh3.Hasher // of the items
}

// split receives a JSON body. It returns the body without its items, and a hash of the items. The
// items themselves can be read from the stream.
func (r *request) split(in *incoming, invalid fault.Code) (rest []byte, hash uint64, err error) {
	s := &splitting{shapes: r.shapes, field: r.itemsField(), invalid: invalid, hash: xxh3.New()}
	in.stream.received, err = in.receive(int64(r.body.limit), s.splitItems)
	if err != nil {
		return nil, 0, err
	}
	return s.rest.Bytes(), s.hash.Sum64(), nil
}

// itemsField is the member of the JSON body whose items come one by one.
func (r *request) itemsField() *field {
	members := r.shapes[r.body.typ]
	return &members.fields[members.byName[r.stream.items]]
}

// splitItems is the Refine of the body, which may begin with a byte order mark. Its errors are
// coded, except those of writing.
func (s *splitting) splitItems(to io.Writer, body io.Reader) error {
	buffered := bufio.NewReader(body)
	if head, _ := buffered.Peek(len(mark)); string(head) == mark {
		_, _ = buffered.Discard(len(mark)) // cannot fail: the bytes were peeked
	}
	within := &fence{from: buffered}
	dec := json.NewDecoder(within)
	out := &errWriter{to: to}
	err := s.object(dec, within, out)
	if out.err != nil {
		return out.err
	}
	if coded := (*fault.Error)(nil); err == nil || errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, errBeyond) {
		return fault.Invalid(fault.PayloadTooLarge, cmp.Or(s.at, s.field.name),
			"a member, or an item, has more than %d bytes", maxItem)
	}
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
		return fault.Invalid(fault.InvalidBody, s.field.name, "must be an array")
	}
	return fault.Invalid(fault.InvalidBody, s.at, "not valid JSON: %v", err)
}

// object reads the body's only value, an object.
func (s *splitting) object(dec *json.Decoder, within *fence, to io.Writer) error {
	within.open()
	switch open, err := dec.Token(); {
	case errors.Is(err, errBeyond):
		return err
	case err != nil || open != json.Delim('{'):
		return fault.New(fault.InvalidBody, "a JSON object is needed")
	}
	seen := map[string]bool{}
	s.rest.WriteByte('{')
	for dec.More() {
		s.at = ""
		within.open()
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] || len(seen) == maxMembers {
			return fault.New(fault.InvalidBody, "member %.100q comes twice, or is one too many",
				name)
		}
		seen[name] = true
		s.at = fmt.Sprintf("%.100s", name)
		if err := s.member(dec, within, name, to); err != nil {
			return err
		}
	}
	s.at = ""
	if _, err := dec.Token(); err != nil {
		return err
	}
	s.rest.WriteByte('}')
	within.open()
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.InvalidBody, "more follows the JSON object")
	}
	return nil
}

// member keeps a member, or passes its items on.
func (s *splitting) member(dec *json.Decoder, within *fence, name string, to io.Writer) error {
	if s.rest.Len() > 1 {
		s.rest.WriteByte(',')
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return err
	}
	_, _ = s.rest.Write(quoted) // a buffer takes everything
	s.rest.WriteByte(':')
	within.open()
	var value json.RawMessage
	if name == s.field.name {
		token, err := dec.Token()
		switch {
		case err != nil:
			return err
		case token == json.Delim('['):
			s.rest.WriteString("[]")
			return s.items(dec, within, to)
		case token == json.Delim('{'):
			return fault.Invalid(s.invalid, name, "must be an array")
		}
		value, err = json.Marshal(token) // decodeBody checks it later
		if err != nil {
			return err
		}
	} else if err := dec.Decode(&value); err != nil {
		return err
	}
	if s.rest.Len()+len(value) > bodyLimit {
		return fault.New(fault.PayloadTooLarge, "the members beside %s may have at most %d bytes",
			s.field.name, bodyLimit)
	}
	_, _ = s.rest.Write(value)
	return nil
}

// items checks the items and writes each as a line of JSON.
func (s *splitting) items(dec *json.Decoder, within *fence, to io.Writer) error {
	most, line := maxItems, bytes.Buffer{}
	if s.field.rules.max != nil {
		most = int(*s.field.rules.max)
	}
	encode := json.NewEncoder(&line)
	encode.SetEscapeHTML(false)
	for n := 0; dec.More(); n++ {
		if n == most {
			p := &problems{invalid: s.invalid}
			p.add(s.field.rules.code, s.field.name, "must be at most %d items", most)
			return p.list[0]
		}
		within.open()
		s.at = s.field.name + "[" + strconv.Itoa(n) + "]"
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return err
		}
		value, err := s.check(item, s.at)
		if err != nil {
			return err
		}
		line.Reset()
		if err := encode.Encode(value.Interface()); err != nil {
			return fmt.Errorf("encode an item: %w", err)
		}
		_, _ = s.hash.Write(line.Bytes()) // a hash never fails
		if _, err := to.Write(line.Bytes()); err != nil {
			return err
		}
	}
	s.at = s.field.name
	_, err := dec.Token()
	return err
}

// check decodes an item as decodeArray would decode it in a whole body.
func (s *splitting) check(item json.RawMessage, path string) (reflect.Value, error) {
	value := reflect.New(s.field.typ.Elem()).Elem()
	if !utf8.Valid(item) {
		return value, fault.Invalid(fault.InvalidBody, path, "not valid UTF-8")
	}
	if err := checkSyntax(item); err != nil {
		return value, fault.Invalid(fault.InvalidBody, path, "not valid JSON: %v", err)
	}
	p := &problems{invalid: s.invalid}
	each := &rules{required: true}
	if s.field.rules.each != nil {
		each = s.field.rules.each
	}
	s.shapes.decodeJSON(item, value, each, path, p)
	if len(p.list) > 0 {
		return value, p.list[0]
	}
	return value, nil
}

var errBeyond = errors.New("a value is too long")

// fence lets a reader have maxItem bytes, the most of one value, until it is opened again.
type fence struct {
	from io.Reader
	left int
}

func (f *fence) open() { f.left = maxItem }

// Read implements io.Reader.
func (f *fence) Read(p []byte) (n int, err error) {
	if f.left <= 0 {
		return 0, errBeyond
	}
	n, err = f.from.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// errWriter keeps a writer's error apart from those of a reader.
type errWriter struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (w *errWriter) Write(p []byte) (n int, err error) {
	if w.err == nil {
		n, w.err = w.to.Write(p)
	}
	return n, w.err
}

package operation

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
)

// bodyLimit is the most bytes of a JSON body, unless its field has the tag limit.
const bodyLimit = 1 << 20

// request is a compiled request type.
type request struct {
	typ    reflect.Type
	shapes shapes
	path   *shape
	query  *shape
	header *shape
	body   *bodyField
	stream *streamField
	// unknown query parameters are ignored
	lenient bool
}

type bodyField struct {
	index []int
	typ   reflect.Type
	limit int
	raw   bool   // passed to the handler as it came
	media string // of a raw body; "": JSON
	form  bool   // encoded as browsers encode forms
	rules rules
}

type streamField struct {
	index []int
	types []string
	items string // the member of a JSON body whose items come through the stream; "": none
}

// compileRequest reads a request type. It panics on a type that it cannot use, a programming error.
func compileRequest(id string, t reflect.Type) *request {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("operation %s: the request must be a struct", id))
	}
	r := &request{typ: t, shapes: shapes{}, path: &shape{byName: map[string]int{}},
		query:  &shape{byName: map[string]int{}},
		header: &shape{byName: map[string]int{}}}
	r.path.collect(t, nil, "path")
	for i := range r.path.fields {
		r.path.fields[i].rules.required = true
	}
	r.query.collect(t, nil, "query")
	r.header.collect(t, nil, "header")
	for _, f := range slices.Concat(r.path.fields, r.query.fields, r.header.fields) {
		r.shapes.add(f.typ)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if form := f.Tag.Get("body"); form != "" {
			r.body = &bodyField{index: f.Index, typ: f.Type, limit: bodyLimit, raw: form == "raw",
				media: f.Tag.Get("media"), form: form == "form", rules: readRules(t, f)}
			r.body.rules.required = true
			if text := f.Tag.Get("limit"); text != "" {
				limit, err := strconv.Atoi(text)
				if err != nil {
					panic(fmt.Sprintf("operation %s: limit %q", id, text))
				}
				r.body.limit = limit
			}
			if !r.body.raw {
				r.shapes.add(f.Type)
			}
		}
		if types := f.Tag.Get("stream"); types != "" {
			r.stream = &streamField{index: f.Index, types: strings.Split(types, ","),
				items: f.Tag.Get("items")}
		}
	}
	if r.stream != nil && (r.body == nil || r.body.typ.Kind() != reflect.Struct) {
		panic(fmt.Sprintf("operation %s: a stream stands beside a JSON body", id))
	}
	return r
}

// incoming is a request, copied out of the server's buffers.
type incoming struct {
	segment     func(name string) string // of the path, decoded
	query       map[string][]string
	header      func(name string) string
	contentType string // media type without parameters, lower case
	read        func(limit int) ([]byte, error)
	stream      *Stream
	receive     func(limit int64, refine Refine) (spooled, error)
	hasBody     bool
	bodyName    string // by which the caller knows the body; "": it has none
}

// streams says whether a body of this type is passed to the handler as it arrives.
func (r *request) streams(contentType string) bool {
	if r.stream == nil {
		return false
	}
	for _, known := range r.stream.types {
		if known == contentType {
			return true
		}
	}
	return false
}

// splits says whether the items of a JSON body are passed to the handler one by one.
func (r *request) splits(contentType string) bool {
	return r.stream != nil && r.stream.items != "" && contentType == r.mediaTypes()[0]
}

// decode makes a request value of what arrived. It reports all faults, those of the path first.
func (r *request) decode(in *incoming, invalid fault.Code) (value reflect.Value, body []byte,
	err error) {
	value = reflect.New(r.typ)
	p := &problems{invalid: invalid}
	v := value.Elem()
	for i := range r.path.fields {
		f := &r.path.fields[i]
		r.shapes.decodeText(in.segment(f.name), v.FieldByIndex(f.index), &f.rules, f.name, p)
	}
	for i := range r.header.fields {
		if f := &r.header.fields[i]; in.header(f.name) != "" {
			r.shapes.decodeText(in.header(f.name), v.FieldByIndex(f.index), &f.rules, f.name, p)
		}
	}
	streamed := r.streams(in.contentType)
	r.decodeQuery(in, v, streamed, p)
	switch {
	case streamed:
		v.FieldByIndex(r.stream.index).Set(reflect.ValueOf(in.stream))
	case r.splits(in.contentType):
		rest, hash, err := r.split(in, invalid)
		if err != nil {
			return value, nil, err
		}
		v.FieldByIndex(r.stream.index).Set(reflect.ValueOf(in.stream))
		r.shapes.decodeBody(rest, v.FieldByIndex(r.body.index), &r.body.rules, in.bodyName, p)
		body = binary.BigEndian.AppendUint64(rest, hash)
	case r.body != nil:
		// An empty body of an unsupported type is refused like a longer one: the query's form
		// depends on the body's type.
		if (in.hasBody || r.stream != nil) && in.contentType != r.mediaTypes()[0] {
			return value, nil,
				fault.Invalid(fault.UnsupportedMediaType, "Content-Type", "must be %s",
					strings.Join(r.mediaTypes(), " or "))
		}
		if body, err = in.read(r.body.limit); err != nil {
			return value, nil, err
		}
		if r.body.form {
			r.decodeForm(body, v.FieldByIndex(r.body.index), p)
			break
		}
		if r.body.raw {
			v.FieldByIndex(r.body.index).SetBytes(body)
			break
		}
		r.shapes.decodeBody(body, v.FieldByIndex(r.body.index), &r.body.rules, in.bodyName, p)
	case in.hasBody:
		if body, err = in.read(bodyLimit); err != nil {
			return value, nil, err
		}
		if !isNothing(body) {
			refuseBody(body, p)
		}
		body = nil
	}
	if len(p.list) == 0 {
		p.list = validate(value, r)
	}
	return value, body, p.list.OrNil()
}

// refuseBody refuses the body of an operation that takes none, naming the body's members.
func refuseBody(body []byte, p *problems) {
	const detail = "this operation takes no body"
	var members map[string]json.RawMessage
	if checkSyntax(body) != nil || json.Unmarshal(body, &members) != nil || members == nil {
		p.add(fault.InvalidBody, "", detail)
		return
	}
	for _, name := range sortedKeys(members) {
		p.add(fault.UnknownField, name, detail)
	}
}

// isNothing says whether a body is empty or {}. Many clients send {} where there is no body
// (decision 57).
func isNothing(body []byte) bool {
	text := bytes.TrimSpace(body)
	if len(text) == 0 {
		return true
	}
	inner, opens := bytes.CutPrefix(text, []byte("{"))
	inner, closes := bytes.CutSuffix(inner, []byte("}"))
	return opens && closes && len(bytes.TrimSpace(inner)) == 0
}

// decodeQuery reads the parameters. With a streamed body, the members of the JSON body are among
// them.
func (r *request) decodeQuery(in *incoming, v reflect.Value, streamed bool, p *problems) {
	known := map[string]bool{}
	read := func(from reflect.Value, f *field) {
		known[f.name] = true
		texts, given := in.query[f.name]
		into := from.FieldByIndex(f.index)
		switch {
		case !given:
			r.shapes.absent(into, f, f.name, p)
		case into.Kind() == reflect.Slice && into.Type() != rawType && !streamed:
			r.decodeRepeated(texts, into, f, p)
		case len(texts) > 1:
			p.add(f.rules.code, f.name, "must be given once")
		default:
			r.shapes.decodeText(texts[0], into, &f.rules, f.name, p)
		}
	}
	for i := range r.query.fields {
		read(v, &r.query.fields[i])
	}
	if streamed {
		members := r.shapes[r.body.typ]
		for i := range members.fields {
			if f := &members.fields[i]; !f.rules.alone {
				read(v.FieldByIndex(r.body.index), f)
			}
		}
	}
	for _, name := range sortedKeys(in.query) {
		if !known[name] && !r.lenient {
			p.add(fault.UnknownParameter, name, "there is no such parameter")
		}
	}
}

func (r *request) decodeRepeated(texts []string, into reflect.Value, f *field, p *problems) {
	into.Set(reflect.MakeSlice(into.Type(), len(texts), len(texts)))
	item := rules{code: f.rules.code}
	for i, text := range texts {
		r.shapes.decodeText(text, into.Index(i), &item, f.name, p)
	}
	f.rules.check(into, f.name, p)
}

// mediaTypes are the media types of the body, that of a whole body first.
func (r *request) mediaTypes() []string {
	types := []string{"application/json"}
	switch {
	case r.body.form:
		types[0] = formType
	case r.body.media != "":
		types[0] = r.body.media
	}
	if r.stream != nil {
		types = append(types, r.stream.types...)
	}
	return types
}

const formType = "application/x-www-form-urlencoded"

// decodeForm reads the members of a form. It ignores others: browser extensions add some.
func (r *request) decodeForm(body []byte, v reflect.Value, p *problems) {
	values, err := url.ParseQuery(string(body))
	if err != nil || !utf8.Valid(body) {
		p.add(fault.InvalidBody, "", "not a form")
		return
	}
	members := r.shapes[r.body.typ]
	for i := range members.fields {
		f := &members.fields[i]
		into := v.FieldByIndex(f.index)
		switch texts := values[f.name]; len(texts) {
		case 0:
			r.shapes.absent(into, f, f.name, p)
		case 1:
			r.shapes.decodeText(texts[0], into, &f.rules, f.name, p)
		default: // choosing one would be a guess
			p.add(f.rules.code, f.name, "must be given once")
		}
	}
}

// Validator is a request, or its body, with rules that tags cannot express. Validate is called when
// everything else is valid.
type Validator interface{ Validate() fault.List }

func validate(value reflect.Value, r *request) fault.List {
	var list fault.List
	if v, ok := value.Interface().(Validator); ok {
		list = append(list, v.Validate()...)
	}
	if r.body != nil {
		if v, ok := value.Elem().FieldByIndex(r.body.index).Addr().Interface().(Validator); ok {
			list = append(list, v.Validate()...)
		}
	}
	return list
}

package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/utf8text"
)

// Tool is an operation as agents call it: all its inputs are named arguments.
type Tool struct {
	*Operation
	// Input describes the arguments, Result a successful answer. Each schema is self-contained.
	Input, Result *jsonschema.Schema
	// List is the member of an answer whose items may be told in parts; "": the answer itself is
	// the list. Listed says whether there is such a list.
	List   string
	Listed bool

	arguments map[string]argument
	marks     *marks
}

// argument says where an argument goes in the call.
type argument struct {
	in     string // path, query, body, whole (the body itself), key, or nowhere
	name   string // in that place
	needed bool   // required of agents only: the operation itself checks what it requires
	list   bool   // may have several values
	kind   reflect.Kind
	json   bool // its text is JSON, which may come unquoted
}

// Names of arguments that a tool has besides those of its operation.
const (
	KeyArgument    = "idempotencyKey"
	CursorArgument = "cursor"
	// LimitArgument is the most items of an answer, of each operation with a cursor of its own.
	LimitArgument = "limit"
	// bodyArgument is a body that is not an object of known members.
	bodyArgument = "body"
)

// defs is the prefix of references to the components of a tool's schemas.
const defs = "#/$defs/"

// NewTool makes the tool of an operation. It is nil if agents do not see the operation.
func NewTool(op *Operation) *Tool {
	if op.Agents == "" {
		return nil
	}
	t := &Tool{Operation: op, arguments: map[string]argument{}}
	in := newSchemas()
	in.refs = defs
	t.Input = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for i := range op.request.path.fields {
		t.add(in, "path", &op.request.path.fields[i])
	}
	for i := range op.request.query.fields {
		t.add(in, "query", &op.request.query.fields[i])
	}
	if op.request.body != nil {
		t.addBody(in)
	}
	if op.Idempotency != Ignored {
		t.put(KeyArgument, "key", false, &jsonschema.Schema{Type: "string",
			Description: "The same key within 24 hours returns the first answer again: resend " +
				"it if a call was lost"})
	}
	if _, own := t.arguments[CursorArgument]; !own {
		t.put(CursorArgument, "cursor", false, &jsonschema.Schema{Type: "string",
			Description: "cursor of a truncated answer, to get the rest; keep the other " +
				"arguments unchanged"})
	}
	t.Input.Defs = in.components
	say(t.Input)
	t.describeResult()
	return t
}

func (t *Tool) add(s *schemas, in string, f *field) {
	if _, taken := t.arguments[f.name]; f.rules.stamped && !taken {
		t.arguments[f.name] = argument{in: "nowhere"}
	}
	if f.rules.agent == agentLacks || f.rules.stamped {
		return
	}
	made := s.value(f, true)
	if in == "body" {
		made = s.field(f, true)
	}
	needed, as := f.rules.agent == agentNeeds, f.name
	if _, taken := t.arguments[as]; in == "body" &&
		(taken || as == KeyArgument || as == CursorArgument) {
		as = "body_" + as
	}
	t.put(as, in, f.rules.required || needed, made)
	a := argument{in: in, name: f.name, needed: needed, kind: f.typ.Kind(),
		list: f.typ.Kind() == reflect.Slice && f.typ != rawType,
		json: f.rules.code == fault.InvalidFilter}
	if a.kind == reflect.Pointer || a.list {
		a.kind = f.typ.Elem().Kind()
	}
	t.arguments[as] = a
}

func (t *Tool) put(name, in string, required bool, schema *jsonschema.Schema) {
	t.arguments[name] = argument{in: in, name: name, kind: reflect.String}
	t.Input.Properties[name] = schema
	t.Input.PropertyOrder = append(t.Input.PropertyOrder, name)
	if required {
		t.Input.Required = append(t.Input.Required, name)
	}
}

// addBody makes the members of a body arguments. A name that is taken gets the prefix body_. A body
// that is not an object becomes one argument.
func (t *Tool) addBody(s *schemas) {
	body := t.request.body
	var members []field
	if shape := t.request.shapes[body.typ]; shape != nil {
		members = shape.fields
	}
	if members == nil {
		schema := s.of(body.typ, true)
		body.rules.describe(schema, body.typ, true)
		t.put(bodyArgument, "whole", true, schema)
		return
	}
	for i := range members {
		t.add(s, "body", &members[i])
	}
}

// describeResult describes the answer, and finds out which parts of it are scraped.
func (t *Tool) describeResult() {
	answer := t.response
	if t.Streams() {
		answer = reflect.TypeOf(t.Event)
	}
	s := newSchemas()
	s.refs, s.marked = defs, true
	if answer != reflect.TypeFor[None]() {
		t.Result = s.of(answer, false)
		t.Result.Defs = s.components
		brief(t.Result)
		t.marks = marksOf(answer)
		t.List, t.Listed = listOf(answer)
	}
}

// listOf finds the member of an answer that makes it long.
func listOf(t reflect.Type) (name string, listed bool) {
	if t.Kind() == reflect.Slice && t != rawType {
		return "", true
	}
	if t.Kind() != reflect.Struct {
		return "", false
	}
	sh := &shape{byName: map[string]int{}}
	sh.collect(t, nil, "json")
	lists := 0
	for _, f := range sh.fields {
		if f.typ.Kind() != reflect.Slice || f.typ == rawType {
			continue
		}
		if f.name == "content" || f.name == "items" {
			return f.name, true
		}
		name = f.name
		lists++
	}
	return name, lists == 1
}

// ReadArguments parses the arguments of a call. Absent arguments are an empty map.
func ReadArguments(text json.RawMessage) (args map[string]json.RawMessage, err error) {
	args = map[string]json.RawMessage{}
	if len(text) == 0 || string(text) == "null" {
		return args, nil
	}
	err = checkSyntax(text)
	if beyond := (*boundError)(nil); errors.As(err, &beyond) {
		return nil, fault.Invalid(fault.InvalidBody, beyond.member, "%v", err)
	}
	if err != nil {
		return nil, fault.New(fault.InvalidBody, "the arguments are no JSON: %v", err)
	}
	if json.Unmarshal(text, &args) != nil {
		return nil, fault.New(fault.InvalidBody, "arguments are a JSON object")
	}
	return args, nil
}

// maxUnknown is how many unknown arguments a refusal names.
const maxUnknown = 20

// Fill puts arguments into a call. It refuses arguments that the tool does not have, and requires
// those that agents must give. It drops members that only the service sets, so that an answer can
// be sent as it came. The operation checks the rest, and tells its faults together with these.
func (t *Tool) Fill(args map[string]json.RawMessage, call *Inside) error {
	call.Path, call.Query = map[string]string{}, url.Values{}
	body := map[string]json.RawMessage{}
	var unknown, faults fault.List
	for _, name := range slices.Sorted(maps.Keys(args)) {
		value := bytes.TrimSpace(args[name])
		a, known := t.arguments[name]
		switch {
		case !known && len(unknown) < maxUnknown:
			unknown = append(unknown, fault.Invalid(fault.UnknownParameter,
				utf8text.CutText(name, maxProblemField), "the tool has no such argument"))
		case !known, a.in == "nowhere":
		case a.in == "whole":
			call.Body = value
		case a.in == "body":
			body[a.name] = value
		case string(value) == "null": // null is not given
		case !a.list && bytes.HasPrefix(value, []byte("[")):
			faults = append(faults, fault.Invalid(fault.InvalidRequest, name,
				"must be one value, not a list"))
		default:
			if err := t.set(call, name, value); err != nil {
				faults = append(faults, err)
			}
		}
	}
	for _, name := range t.Input.PropertyOrder {
		a := t.arguments[name]
		if a.in == "whole" {
			call.bodyName = name
		}
		switch {
		case a.needed && isUnsaid(args[name]):
			faults = append(faults, fault.Invalid(fault.InvalidRequest, name,
				"is required of agents"))
		case a.in == "whole" && call.Body == nil,
			a.in == "path" && a.kind == reflect.String && isUnsaid(args[name]):
			faults = append(faults, fault.Invalid(fault.InvalidRequest, name, "is required"))
		}
	}
	if len(unknown) > 0 {
		unknown[0].Detail += " (it takes " + strings.Join(t.takes(), ", ") + ")"
	}
	call.faults = append(unknown, faults...)
	if t.request.body != nil && call.bodyName == "" {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fault.Wrap(fault.InvalidBody, err, "the arguments are no JSON")
		}
		call.Body = encoded
	}
	return nil
}

// takes are the names of the arguments that a model is told of. Only answers that may be long have
// a cursor.
func (t *Tool) takes() []string {
	return slices.DeleteFunc(slices.Clone(t.Input.PropertyOrder), func(name string) bool {
		return name == CursorArgument && !t.HasCursor() && !t.Listed
	})
}

// set puts an argument into the path, the query or the idempotency key.
func (t *Tool) set(call *Inside, name string, value json.RawMessage) *fault.Error {
	a := t.arguments[name]
	for _, one := range several(value) {
		text, ok := a.plainText(one)
		switch {
		case !ok, a.in == "key" && one[0] != '"':
			return fault.Invalid(fault.InvalidRequest, name, "must be text")
		case a.in == "path":
			call.Path[name] = text
		case a.in == "query":
			call.Query.Add(name, text)
		case text != "" && !printable(strings.TrimSpace(text), maxKey):
			return fault.Invalid(fault.InvalidRequest, name, saidOfKeys)
		default:
			call.Key = text
		}
	}
	return nil
}

// isUnsaid says whether an argument is absent, null or "". Operations treat an empty parameter as
// not given.
func isUnsaid(value json.RawMessage) bool {
	text := string(bytes.TrimSpace(value))
	return text == "" || text == "null" || text == `""`
}

// plainText is a JSON value as a parameter has it: a text without quotes, anything else as JSON. ok
// is false if a text is needed and the value cannot be one.
func (a *argument) plainText(value json.RawMessage) (text string, ok bool) {
	var n int64
	switch {
	case value[0] == '"':
		return text, json.Unmarshal(value, &text) == nil
	case a.kind == reflect.String && !a.json && (a.list || value[0] == '{'):
		return "", false
	case a.kind != reflect.String && setWhole(value, reflect.ValueOf(&n).Elem()):
		return strconv.FormatInt(n, 10), true // 1.0 is whole, too
	}
	return string(value), true
}

// several are the items of an array, or the value itself.
func several(value json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if bytes.HasPrefix(value, []byte("[")) && json.Unmarshal(value, &items) == nil {
		return items
	}
	return []json.RawMessage{value}
}

// path is the operation's path with its parameters filled in.
func (c *Inside) path(op *Operation) string {
	path := op.Routes[0].Path
	for name, value := range c.Path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return path
}

// Hints tell agents the effect of a call (annotations of a tool in the protocol).
type Hints struct {
	Effect      Effect `json:"effect"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

// Hints returns the hints of the operation.
func (op *Operation) Hints() Hints {
	e := op.Agents
	return Hints{Effect: e, ReadOnly: e == Reads, Destructive: e == Destroys || op.Forgets,
		Idempotent: e == Reads || e == Sets || e == Destroys, OpenWorld: e == Spends || op.Reaches}
}

// summary is what the OpenAPI document says of the operation for agents.
func (t *Tool) summary() any {
	needs := []string{}
	for _, name := range t.Input.PropertyOrder {
		if t.arguments[name].needed {
			needs = append(needs, name)
		}
	}
	return struct {
		Hints
		Needs []string `json:"needs"` // of agents only
	}{t.Hints(), needs}
}

// HasCursor says whether the operation has a cursor of its own.
func (t *Tool) HasCursor() bool { return t.arguments[CursorArgument].in == "query" }

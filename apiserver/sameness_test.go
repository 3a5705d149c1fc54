package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// The description and the server refuse the same requests. Each parameter and body member gets
// values just inside and just outside of its schema, and odd ones. If only the server refuses, the
// schema lacks a rule. If only the schema refuses, it has one too many.
func TestTheDescriptionIsEnforced(t *testing.T) {
	h := newSameness(t)
	for _, path := range slices.Sorted(maps.Keys(h.paths)) {
		methods := h.paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			h.operation(t, path, method, methods[method].(map[string]any))
		}
	}
	if h.taken < 1_000 || h.refused < 2_000 {
		t.Errorf("only %d values that are taken and %d that are refused", h.taken, h.refused)
	}
	t.Logf("%d values are taken, %d refused", h.taken, h.refused)
}

// sameness compares a server with its description.
type sameness struct {
	url            string
	client         *http.Client
	paths          map[string]any
	compiler       *jsonschema.Compiler
	document       any
	secrets        map[auth.Access]string
	access         map[string]auth.Access // by operation id
	calls          int
	taken, refused int
}

func newSameness(t *testing.T) *sameness {
	t.Helper()
	guard, err := egress.New(egress.Config{Resolver: noNames{}, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	s := newTestServer(t, func(config *Config) {
		config.Guard, config.Store = guard, store
		config.NoRateLimits, config.MaxHostRate, config.MaxHostConnections = true, 10, 8
	})
	h := &sameness{url: serve(t, s), client: &http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}, access: map[string]auth.Access{}, compiler: jsonschema.NewCompiler()}
	ops := s.operations()
	text, err := document(ops, s.ceilings)
	if err != nil {
		t.Fatal(err)
	}
	if h.document, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	h.compiler.DefaultDraft(jsonschema.Draft2020)
	h.compiler.AssertFormat()
	if err := h.compiler.AddResource("mem:doc", h.document); err != nil {
		t.Fatal(err)
	}
	h.paths = h.document.(map[string]any)["paths"].(map[string]any)
	for _, op := range ops {
		for i, route := range op.Routes {
			id := op.ID
			if i > 0 {
				id += "_by_" + strings.ToLower(route.Method)
			}
			h.access[id] = op.Access
		}
	}
	h.secrets = newSecrets(t, s)
	return h
}

// serve runs the server on loopback until the test ends.
func serve(t *testing.T, s *Server) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

// noNames resolves nothing.
type noNames struct{}

func (noNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// newSecrets makes a credential for each kind of access.
func newSecrets(t *testing.T, s *Server) map[auth.Access]string {
	t.Helper()
	fake, source := s.config.Client.(*clienttest.Client), s.config.IDs
	secrets := map[auth.Access]string{}
	for access, scope := range map[auth.Access]model.Scope{auth.Mint: model.ScopeUser,
		auth.Restricted: model.ScopeLLMFull} {
		fake.Must(t, client.OpenCustomer{Customer: "alice", Entry: source.New()})
		secret := auth.NewSecret()
		fake.Must(t, client.MintKey{ID: source.New(), Customer: "alice", Prefix: secret.Prefix,
			Hash: secret.Hash, Scope: scope})
		secrets[access] = secret.Text
	}
	for access, subject := range map[auth.Access]string{auth.SignInOnly: "alice",
		auth.SignUp: "carol", auth.Admin: "root"} {
		token, err := MintToken(s.config.DataDir, subject, access == auth.Admin,
			s.config.Clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets[access] = token
	}
	group, err := ids.Parse("68e5b1c2d3f4a5b6c7d8e9f0") // as in the examples
	if err != nil {
		t.Fatal(err)
	}
	fake.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "shops",
		DataTable: "t", StartType: "MANUAL"})
	secrets[auth.Read], secrets[auth.Write] = secrets[auth.Mint], secrets[auth.Mint]
	return secrets
}

// call is a request that is varied: its parameters by place and name, and its body.
type call struct {
	id, method, path string
	parameters       map[string]string // key such as "query page"; value as sent
	body             any               // nil: none
}

// operation varies the parameters and body of one operation.
func (h *sameness) operation(t *testing.T, path, method string, op map[string]any) {
	t.Helper()
	c := &call{id: op["operationId"].(string), method: strings.ToUpper(method), path: path,
		parameters: map[string]string{}}
	at := "/paths/" + escapePointer(path) + "/" + method
	parameters, _ := op["parameters"].([]any)
	for _, one := range parameters {
		p := one.(map[string]any)
		if p["example"] != nil {
			c.parameters[fmt.Sprint(p["in"], " ", p["name"])] = plainText(p["example"])
		}
	}
	body, _ := op["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	whole, isJSON := content["application/json"].(map[string]any)
	if isJSON {
		c.body = whole["example"]
	}
	streamed := len(content) > 1 || body != nil && !isJSON
	for i, one := range parameters {
		p := one.(map[string]any)
		note, _ := p["description"].(string)
		if !strings.Contains(note, "With a streamed body only") {
			h.parameter(t, c, p, fmt.Sprint(at, "/parameters/", i, "/schema"))
		}
	}
	schema, _ := whole["schema"].(map[string]any)
	raw := schema["type"] == "object" && schema["properties"] == nil &&
		schema["additionalProperties"] == nil
	if !isJSON || raw || streamed && c.id == "svc_admin_restore" {
		return
	}
	compiled := h.compile(t, at+"/requestBody/content/application~1json/schema")
	h.members(t, c, compiled, schema, c.body, nil)
}

func (h *sameness) compile(t *testing.T, at string) *jsonschema.Schema {
	t.Helper()
	compiled, err := h.compiler.Compile("mem:doc#" + at)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return compiled
}

// parameter varies one parameter. Its text is read as an array, a number or a boolean if the schema
// says so.
func (h *sameness) parameter(t *testing.T, c *call, p map[string]any, at string) {
	t.Helper()
	name, place := p["name"].(string), p["in"].(string)
	compiled := h.compile(t, at)
	schema := h.resolve(p["schema"])
	for _, value := range h.values(name, schema) {
		if _, isList := value.([]any); isList || value == nil || value == "" && place != "query" {
			continue // lists are repeated; empty headers are absent, empty segments another path
		}
		text := plainText(value)
		value = text
		if place == "header" && text != strings.TrimSpace(text) {
			continue // HTTP trims spaces
		}
		if place != "query" && strings.ContainsFunc(text,
			func(r rune) bool { return r < ' ' || r >= 0x7f || r == '/' }) {
			continue
		}
		var read any = text
		switch schema["type"] {
		case "integer":
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				read = json.Number(strconv.FormatInt(n, 10))
			}
		case "boolean":
			if text == "true" || text == "false" {
				read = text == "true"
			}
		case "array":
			read = []any{text}
		}
		if c.meant(name, compiled.Validate(read) == nil, value, schema) {
			continue
		}
		varied := *c
		varied.parameters = maps.Clone(c.parameters)
		varied.parameters[place+" "+name] = text
		h.compare(t, &varied, name, value, compiled.Validate(read))
	}
}

// members varies the value at a path of the body, and everything within it.
func (h *sameness) members(t *testing.T, c *call, whole *jsonschema.Schema, of, value any,
	path []any) {
	t.Helper()
	schema := h.resolve(of)
	name := ""
	for _, part := range path {
		if text, ok := part.(string); ok {
			name = text
		}
	}
	send := func(value any) {
		varied := *c
		varied.body = with(c.body, path, value)
		verdict := whole.Validate(varied.body)
		if !c.meant(name, verdict == nil, value, schema) {
			h.compare(t, &varied, dotted(path), value, verdict)
		}
	}
	if schema["readOnly"] != true {
		for _, odd := range h.values(name, schema) {
			send(odd)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if schema["additionalProperties"] == false {
			varied := *c
			varied.body = with(c.body, append(slices.Clone(path), "strange"), 1)
			h.compare(t, &varied, strings.TrimPrefix(dotted(path)+".strange", "."), 1,
				whole.Validate(varied.body))
		}
		properties, _ := schema["properties"].(map[string]any)
		for _, member := range slices.Sorted(maps.Keys(properties)) {
			inner := h.resolve(properties[member])
			if inner["readOnly"] == true {
				continue
			}
			below := append(slices.Clone(path), member)
			varied := *c
			varied.body = with(c.body, below, absent{})
			h.compare(t, &varied, dotted(below), "nothing", whole.Validate(varied.body))
			given, ok := v[member]
			if !ok || given == nil {
				given = h.sample(inner)
			}
			varied.body = with(c.body, below, given)
			h.members(t, &varied, whole, inner, given, below)
		}
	case []any:
		if len(v) > 0 && schema["items"] != nil {
			h.members(t, c, whole, schema["items"], v[0], append(slices.Clone(path), 0))
		}
	}
}

// resolve follows references, and skips the null alternative.
func (h *sameness) resolve(of any) map[string]any {
	schema, _ := of.(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		var at any = h.document
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		return h.resolve(at)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		found := maps.Clone(h.resolve(choices[0]))
		found["nullable"] = true
		if schema["readOnly"] != nil {
			found["readOnly"] = schema["readOnly"]
		}
		return found
	}
	if types, ok := schema["type"].([]any); ok {
		schema = maps.Clone(schema)
		schema["type"], schema["nullable"] = types[0], true
	}
	return schema
}

// sample makes a valid value for a schema without an example.
func (h *sameness) sample(schema map[string]any) any {
	switch schema["type"] {
	case "object":
		made := map[string]any{}
		required, _ := schema["required"].([]any)
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range required {
			member := h.resolve(properties[name.(string)])
			made[name.(string)] = meaningful(name.(string), member)
			if made[name.(string)] == nil {
				made[name.(string)] = h.sample(member)
			}
		}
		return made
	case "array":
		return []any{h.sample(h.resolve(schema["items"]))}
	}
	if enum, ok := schema["enum"].([]any); ok {
		return enum[0]
	}
	return map[any]any{"string": "abc", "integer": json.Number("1"), "number": json.Number("1"),
		"boolean": true}[schema["type"]]
}

// compare sends a call, and requires the server and the schema to agree.
func (h *sameness) compare(t *testing.T, c *call, field string, value any, schema error) {
	t.Helper()
	blamed := field
	if schema != nil && c.body != nil {
		blamed = "" // another member may be at fault
	}
	refusal := h.send(t, c, blamed)
	switch {
	case refusal == tooLarge && schema == nil: // a limit in bytes; schemas count characters
	case schema == nil && refusal != "":
		t.Errorf("%s %s = %s: the schema takes it, the server does not: %s", c.id, field,
			short(value), refusal)
	case schema != nil && refusal == "":
		t.Errorf("%s %s = %s: the server takes it, the schema does not: %v", c.id, field,
			short(value), schema)
	case schema == nil:
		h.taken++
	default:
		h.refused++
	}
}

// anyKey is the example of an idempotency key. Each call replaces it by its own.
const anyKey = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"

// aList is the example name of a list run. A second run under the same name is refused.
const aList = "books of January"

// tooLarge is the result of send if the server refuses the whole request for its size.
const tooLarge = "too large"

// send returns what the server says against a field, "" if it accepts it.
func (h *sameness) send(t *testing.T, c *call, field string) string {
	t.Helper()
	h.calls++
	path, query, header := c.path, url.Values{}, http.Header{}
	for _, name := range slices.Sorted(maps.Keys(c.parameters)) {
		switch place, bare, _ := strings.Cut(name, " "); place {
		case "path":
			path = strings.ReplaceAll(path, "{"+bare+"}", url.PathEscape(c.parameters[name]))
		case "query":
			query.Set(bare, c.parameters[name])
		case "header":
			header.Set(bare, c.parameters[name])
		}
	}
	if header.Get("Idempotency-Key") == anyKey {
		header.Set("Idempotency-Key", fmt.Sprint("key-", h.calls))
	}
	if secret := h.secrets[h.access[c.id]]; secret != "" {
		header.Set("Authorization", "Bearer "+secret)
	}
	var body []byte
	if c.body != nil {
		var err error
		sent := c.body
		if list, _ := sent.(map[string]any); list["name"] == aList {
			sent = with(sent, []any{"name"}, fmt.Sprint(aList, h.calls))
		}
		if body, err = json.Marshal(sent); err != nil {
			t.Fatal(err)
		}
		header.Set("Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(t.Context(), c.method,
		h.url+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < 400 || strings.HasPrefix(answer.Header.Get("Content-Type"),
		"text/html") { // the page explains the error to a person
		return ""
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct {
		Code   fault.Code
		Errors []struct{ Field, Message, Code string }
	}
	if err := json.Unmarshal(said, &problem); err != nil {
		t.Fatalf("%s %s: %d %v: %s", c.method, path, answer.StatusCode, err, said)
	}
	if strings.Contains(string(said), "page times size") {
		return "" // the limit is on both together (decision 19)
	}
	if answer.StatusCode == http.StatusInternalServerError {
		t.Errorf("%s %s = %s: %s", c.id, field, short(c.body), said)
	}
	if isBeyond(problem.Code) {
		return ""
	}
	if answer.StatusCode == http.StatusRequestEntityTooLarge ||
		answer.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		return tooLarge
	}
	for _, one := range problem.Errors {
		if one.Field == field || field == "" ||
			strings.HasPrefix(one.Field, field+".") || strings.HasPrefix(one.Field, field+"[") ||
			one.Field == "" && problem.Code == fault.InvalidBody {
			return fmt.Sprintf("%d %s %s: %s", answer.StatusCode, one.Code, one.Field,
				one.Message)
		}
	}
	return ""
}

// meant reports whether the schema accepts a value that means nothing, which no schema can check.
func (c *call) meant(name string, taken bool, value any, schema map[string]any) bool {
	text, isText := value.(string)
	base, known := meanings()[name]
	return taken && known && (base == "" || isText) && schema["enum"] == nil &&
		(base == "" || !strings.HasPrefix(text, base) || strings.Contains(text, "ü"))
}

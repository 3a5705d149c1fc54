package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// TestOperationReferenceIsAsBuilt compares the page of operations with their declarations. -update
// rewrites it.
func TestOperationReferenceIsAsBuilt(t *testing.T) {
	ops := newTestServer(t).operations()
	encoded, err := document(ops)
	if err != nil {
		t.Fatal(err)
	}
	var doc openAPI
	if err := json.Unmarshal(encoded, &doc); err != nil {
		t.Fatal(err)
	}
	text := doc.page(ops)
	path := filepath.Join("..", "docs", "interface", "operations.md")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != text {
		t.Errorf("%s is not what the declarations say: run the test with -update", path)
	}
	if strings.Contains(text, "<nil>") {
		t.Errorf("%s has a value that nobody can send", path)
	}
	for _, op := range ops {
		if !strings.Contains(text, "\n### "+op.ID+"\n") {
			t.Errorf("%s has no %s", path, op.ID)
		}
	}
}

// openAPI is the part of an OpenAPI document that the page needs.
type openAPI struct {
	Paths      map[string]map[string]described
	Components struct{ Schemas map[string]schema }
}

type described struct {
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct {
		Description string
		Content     map[string]media
	}
}

type media struct{ Schema schema }

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format               string
	Description          string
	Enum                 []any
	Default              any
	Minimum, Maximum     *float64
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	Pattern              string
	Items                *schema
	Properties           map[string]schema
	Required             []string
	AnyOf                []schema
}

// UnmarshalJSON reads true as the schema that accepts everything.
func (s *schema) UnmarshalJSON(text []byte) error {
	if string(text) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// page lists every operation by group, in the order of the catalogue, then every component by name.
func (d *openAPI) page(ops []*operation.Operation) string {
	var text strings.Builder
	text.WriteString("# Operations\n\n" +
		"Written from the code by `go test ./apiserver -run TestOperationReferenceIsAsBuilt " +
		"-update`.\n\n" +
		"[The interface](README.md) describes what applies to all operations, " +
		"[the list of codes](../reference/errors.md) what each code means.\n")
	groups, names := map[string][]*operation.Operation{}, []string{}
	for _, op := range ops {
		if groups[op.Group] == nil {
			names = append(names, op.Group)
		}
		groups[op.Group] = append(groups[op.Group], op)
	}
	for _, name := range names {
		fmt.Fprintf(&text, "\n## Operations: %s\n", name)
		for _, op := range groups[name] {
			d.operation(&text, op)
		}
	}
	text.WriteString("\n## Components\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		component := d.Components.Schemas[name]
		fmt.Fprintf(&text, "\n### %s\n\n", name)
		if len(component.Properties) == 0 {
			fmt.Fprintf(&text, "%s.\n", component.kind())
			continue
		}
		fields(&text, component)
	}
	return text.String()
}

// operation writes one operation: its routes, its declaration, its input and output, and its
// errors.
func (d *openAPI) operation(text *strings.Builder, op *operation.Operation) {
	route := op.Routes[0]
	o := d.Paths[route.Path][strings.ToLower(route.Method)]
	fmt.Fprintf(text, "\n### %s\n\n", op.ID)
	for _, r := range op.Routes {
		fmt.Fprintf(text, "    %s %s\n", r.Method, r.Path)
	}
	fmt.Fprintf(text, "\n%s. %s\n", strings.TrimSuffix(o.Summary, "."),
		strings.ReplaceAll(o.Description, "\n\n", " "))
	if len(o.Parameters) > 0 {
		text.WriteString("\n| parameter | in | type | |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			row(text, named(p.Name, p.Required), p.In, p.Schema.kind(), p.Description)
		}
	}
	text.WriteByte('\n')
	contents(text, "Body", o.RequestBody.Content)
	var refused []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := o.Responses[status]
		if codes, isFault := strings.CutPrefix(answer.Description, "Codes: "); isFault {
			refused = append(refused,
				fmt.Sprintf("%s `%s`", status, strings.ReplaceAll(codes, ", ", "`, `")))
			continue
		}
		if len(answer.Content) == 0 {
			fmt.Fprintf(text, "- Answer %s: no body\n", status)
		}
		contents(text, "Answer "+status, answer.Content)
	}
	fmt.Fprintf(text, "- Errors: %s\n", strings.Join(refused, ". "))
}

func contents(text *strings.Builder, what string, content map[string]media) {
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		fmt.Fprintf(text, "- %s (`%s`): %s\n", what, kind, content[kind].Schema.kind())
	}
}

func fields(text *strings.Builder, s schema) {
	text.WriteString("| field | type | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		row(text, named(name, slices.Contains(s.Required, name)), p.kind(), p.Description)
	}
}

// row writes a line of a table, escaping what would end a cell.
func row(text *strings.Builder, cells ...string) {
	for _, cell := range cells {
		text.WriteString("| " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(cell) + " ")
	}
	text.WriteString("|\n")
}

func named(name string, required bool) string {
	if required {
		return "`" + name + "` (required)"
	}
	return "`" + name + "`"
}

// kind describes a schema in a few words: its type, then its bounds.
func (s schema) kind() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	if len(s.AnyOf) > 0 {
		kinds := make([]string, len(s.AnyOf))
		for i, one := range s.AnyOf {
			kinds[i] = one.kind()
		}
		return strings.Join(kinds, " or ")
	}
	kind := "any"
	switch t := s.Type.(type) {
	case string:
		kind = t
	case []any:
		kind = joined(t, " or ", "%v")
	}
	if s.Items != nil {
		kind += " of " + s.Items.kind()
	}
	return strings.Join(append([]string{cmp.Or(s.Format, kind)}, s.bounds()...), ", ")
}

func (s schema) bounds() (bounds []string) {
	note := func(there bool, format string, values ...any) {
		if there {
			bounds = append(bounds, fmt.Sprintf(format, values...))
		}
	}
	enum := slices.DeleteFunc(slices.Clone(s.Enum), // the type already says that it may be null
		func(value any) bool { return value == nil })
	if len(enum) > 10 { // a longer list would fill the sentence
		note(true, "one of %d from `%v` to `%v`", len(enum), enum[0], enum[len(enum)-1])
	} else {
		note(len(enum) > 0, "%s", joined(enum, ", ", "`%v`"))
	}
	note(s.Default != nil, "default `%v`", s.Default)
	note(s.Pattern != "", "`%s`", s.Pattern)
	for _, b := range []struct {
		least, most *float64
		unit        string
	}{
		{s.Minimum, s.Maximum, ""},
		{number(s.MinLength), number(s.MaxLength), " characters"},
		{number(s.MinItems), number(s.MaxItems), " items"},
	} {
		note(b.least != nil, "at least %s%s", plain(b.least), b.unit)
		note(b.most != nil, "at most %s%s", plain(b.most), b.unit)
	}
	return bounds
}

func joined(values []any, between, format string) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf(format, value)
	}
	return strings.Join(texts, between)
}

func number(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func plain(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

package apiserver

import (
	"bytes"
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

var update = flag.Bool("update", false, "write the golden files")

func newTestServer(t *testing.T, settings ...func(*Config)) *Server {
	t.Helper()
	c := clock.NewManual(time.Unix(1_800_000_000, 0))
	config := Config{Client: clienttest.New(t, c), Clock: c, IDs: ids.Random{Now: c.Now},
		DataDir: t.TempDir(), HashKiB: 64,
		Logger: slog.New(slog.DiscardHandler)}
	for _, set := range settings {
		set(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"),
		strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s differs; look at it, then run the test with -update:\n%s", name, diff)
	}
}

func TestGoldens(t *testing.T) {
	ops := newTestServer(t).operations()
	var lines bytes.Buffer
	for _, op := range ops {
		lines.WriteString(op.Line() + "\n")
	}
	golden(t, "operations.txt", lines.Bytes())
	text, err := document(ops)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", text)
	loaded, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(t.Context()); err != nil {
		t.Errorf("not a valid OpenAPI document: %v", err)
	}
	checkTags(t, ops)
	// Clients are generated from these names; a changed name breaks their users' code.
	names := slices.Sorted(maps.Keys(loaded.Components.Schemas))
	golden(t, "components.txt", []byte(strings.Join(names, "\n")+"\n"))
	checkNames(t, names)
	checkEnums(t, loaded.Components.Schemas)
}

// checkTags requires each operation to be in a group that has a tag, and each tag to be used.
func checkTags(t *testing.T, ops []*operation.Operation) {
	t.Helper()
	used := map[string]bool{}
	for _, tag := range tags() {
		used[tag.Name] = false
	}
	for _, op := range ops {
		if _, known := used[op.Group]; !known {
			t.Errorf("%s: the group %q has no tag in describe.go", op.ID, op.Group)
		}
		used[op.Group] = true
	}
	for name, is := range used {
		if !is {
			t.Errorf("the tag %s has no operation", name)
		}
	}
}

// checkEnums refuses a component with the same name as another component's enum. Client generators
// name the type of an enum after its component and member.
func checkEnums(t *testing.T, components openapi3.Schemas) {
	t.Helper()
	for name, component := range components {
		for member, schema := range component.Value.Properties {
			made := name + strings.ToUpper(member[:1]) + member[1:]
			if _, taken := components[made]; taken && len(schema.Value.Enum) > 0 {
				t.Errorf("%s is called like the enum of %s.%s", made, name, member)
			}
		}
	}
}

// checkNames refuses names that mean nothing outside their folder.
func checkNames(t *testing.T, names []string) {
	t.Helper()
	vague := []string{"Item", "Line", "Listed", "Entry", "Shown", "Status", "Result", "Response",
		"Page", "Body", "Candidate", "Run", "Options", "Data"}
	for _, name := range names {
		bare := strings.TrimSuffix(name, "Input")
		if slices.Contains(vague, bare) || strings.HasSuffix(bare, "Body") ||
			strings.Contains(bare, "RawMessage") || strings.HasSuffix(bare, "DTO") {
			t.Errorf("the component %s: a client's author cannot tell what that is", name)
		}
	}
}

// Every route leads to its own operation, whatever its parameters are. Every error code is in the
// catalogue.
func TestRoutes(t *testing.T) {
	s := newTestServer(t)
	ops := s.operations()
	known, seen := fault.Catalog(), map[string]bool{}
	var reached string
	traced := s.chain.Routes(ops, func(op *operation.Operation) fasthttp.RequestHandler {
		return func(*fasthttp.RequestCtx) { reached = op.ID }
	})
	for _, op := range ops {
		if seen[op.ID] {
			t.Errorf("%s is there twice", op.ID)
		}
		seen[op.ID] = true
		for _, code := range op.Errors {
			if _, ok := known[code]; !ok {
				t.Errorf("%s: no such code: %s", op.ID, code)
			}
		}
		for _, route := range op.Routes {
			for _, parameter := range []string{"0123456789abcdef01234567",
				"d4f00000000000000000000a", "list", "g", "v"} {
				var rc fasthttp.RequestCtx
				rc.Request.Header.SetMethod(route.Method)
				rc.Request.SetRequestURI(fill(route.Path, parameter))
				reached = ""
				traced(&rc)
				refused := rc.Response.StatusCode() == fasthttp.StatusMethodNotAllowed
				if parameter == "list" && (reached != "" || refused) {
					continue // the parameter may equal a literal segment of another route
				}
				if reached != op.ID {
					t.Errorf("%s %s leads to %q, want %s", route.Method,
						fill(route.Path, parameter), reached, op.ID)
				}
			}
		}
	}
}

func fill(path, parameter string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = parameter
		}
	}
	return strings.Join(parts, "/")
}

// A wrong method on a fixed path is a 405, even if a path with a parameter has the method.
func TestWrongMethodsOfFixedPaths(t *testing.T) {
	s := newTestServer(t)
	ops := s.operations()
	fixed := map[string][]string{}
	for _, op := range ops {
		for _, route := range op.Routes {
			if !strings.Contains(route.Path, "{") {
				fixed[route.Path] = append(fixed[route.Path], route.Method)
			}
		}
	}
	for path, has := range fixed {
		slices.Sort(has)
		for _, method := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
			if slices.Contains(has, method) {
				continue
			}
			var rc fasthttp.RequestCtx
			rc.Request.Header.SetMethod(method)
			rc.Request.SetRequestURI(path)
			s.customers(&rc)
			allow := string(rc.Response.Header.Peek("Allow"))
			if rc.Response.StatusCode() != fasthttp.StatusMethodNotAllowed ||
				allow != strings.Join(has, ", ") ||
				!bytes.Contains(rc.Response.Body(), []byte(`"code":"method_not_allowed"`)) {
				t.Errorf("%s %s: %d, Allow %q, %s; want 405 and %v", method, path,
					rc.Response.StatusCode(), allow, rc.Response.Body(), has)
			}
		}
	}
}

package house_test

import (
	"bufio"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "shoal.dev/shoal"

// forTests says whether a package exists only for tests: the test kit, and packages named like
// net/http/httptest.
func forTests(dir string) bool {
	return under(dir, "testkit", "e2e") || strings.HasSuffix(path.Base(dir), "test")
}

var roles = []string{"controlplane", "fetcher", "ingest", "billing", "apiserver"}

// under says whether a folder is one of the roots or inside one.
func under(dir string, roots ...string) bool {
	for _, root := range roots {
		if dir == root || strings.HasPrefix(dir, root+"/") {
			return true
		}
	}
	return false
}

// TestRolesKnowEachOtherOnlyThroughTheControlPlane keeps the folders as the architecture describes
// them. Tests of a role may use more around it, so only code that ships is checked.
func TestRolesKnowEachOtherOnlyThroughTheControlPlane(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || (forTests(s.dir) && !under(s.dir, "pkg", "testkit")) {
			continue
		}
		for _, imported := range s.imports {
			target, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			if reason := forbidden(s.dir, target); reason != "" {
				t.Errorf("%s imports %s: %s", s.path, target, reason)
			}
		}
	}
}

// forbidden returns why a package in dir may not import target, "" if it may.
func forbidden(dir, target string) string {
	from, to := roleOf(dir), roleOf(target)
	switch {
	case under(target, "cmd") && !under(dir, "cmd"):
		return "nobody imports cmd: it chooses and wires implementations, and nothing may " +
			"depend on that choice"
	case under(dir, "examples"):
		return "an example is a program of somebody who has the API alone"
	case under(dir, "pkg", "testkit") && to != "":
		return "pkg and testkit never import a role: pkg is what roles share, and the test kit " +
			"sees the service from outside"
	case under(dir, "controlplane") && under(target, "pkg/extract"):
		return "what a page costs and how it is addressed is pkg/price's and pkg/model's to " +
			"say: the control plane " +
			"reads no page"
	case from != "" && to != "" && from != to && target != "controlplane/client":
		return "a role imports pkg and controlplane/client, never another role: roles talk " +
			"through the control plane, " +
			"the three topics and the row store, in one process exactly as across machines"
	case forTests(target) && !forTests(dir) && !under(dir, "cmd", "bench"):
		return "what is there for tests, the bench and the demo may not be needed by " +
			"anything that serves"
	}
	return ""
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		dir, target string
		refused     bool
	}{
		{"fetcher", "pkg/stream", false},
		{"fetcher", "controlplane/client", false},
		{"fetcher", "controlplane/internal/state", true},
		{"fetcher/internal/frontier", "ingest", true},
		{"fetcher", "fetcher/internal/frontier", false},
		{"apiserver", "cmd/shoal", true},
		{"pkg/rowstore", "controlplane/client", true},
		{"testkit/cluster", "fetcher", true},
		{"controlplane", "controlplane/internal/fsm", false},
		{"controlplane/internal/fsm", "pkg/extract/rows", true},
		{"controlplane", "pkg/price", false},
		{"billing", "testkit/synthweb", true},
		{"fetcher", "controlplane/client/clienttest", true},
		{"apiserver", "apiserver/internal/apitest", true},
		{"cmd/shoal", "fetcher", false},
		{"cmd/shoal", "testkit/synthweb", false},
		{"bench", "cmd/shoal", true},
		{"examples/go", "pkg/ids", true},
	} {
		if reason := forbidden(c.dir, c.target); (reason != "") != c.refused {
			t.Errorf("%s importing %s: refused %q, want refused: %v", c.dir, c.target, reason,
				c.refused)
		}
	}
}

// roleOf returns the role whose folder contains dir, "" for none.
func roleOf(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if slices.Contains(roles, first) {
		return first
	}
	return ""
}

// TestImplementationsStayBehindTheirInterfaces: only one place knows each library.
func TestImplementationsStayBehindTheirInterfaces(t *testing.T) {
	const once = "it is used in one place, behind an interface, so that it can be changed there"
	rules := []struct {
		library string
		homes   []string
	}{
		{"github.com/segmentio/kafka-go", []string{"pkg/stream"}},
		{"github.com/ClickHouse/clickhouse-go/v2", []string{"pkg/rowstore"}},
		{"modernc.org/sqlite", []string{"pkg/rowstore"}},
		{"github.com/redis/go-redis/v9", []string{"pkg/cache"}},
		{"github.com/go-redis/redis_rate/v10", []string{"pkg/cache"}},
		{"github.com/hashicorp/raft", []string{"controlplane"}},
		{"github.com/hashicorp/raft-boltdb/v2", []string{"controlplane"}},
		{"github.com/google/btree", []string{"controlplane/internal/state"}},
		{"github.com/hashicorp/memberlist", []string{"controlplane"}},
		{"github.com/valyala/fasthttp",
			[]string{"apiserver", "controlplane", "pkg/egress", "testkit", "bench"}},
		{"github.com/chromedp", []string{"fetcher/internal/chromium"}},
		{"gocloud.dev", []string{"pkg/blobstore"}},
		{"github.com/aws/aws-sdk-go-v2", []string{"pkg/blobstore"}},
		{"github.com/alecthomas/kong", []string{"cmd"}},
		{"go.opentelemetry.io", []string{"pkg/telemetry"}},
		{"github.com/stripe/stripe-go/v85", []string{"apiserver/payment/stripe"}},
		{"github.com/modelcontextprotocol/go-sdk", []string{"apiserver/agents", "cmd"}},
	}
	for _, s := range sources(t) {
		if s.test || forTests(s.dir) {
			continue
		}
		for _, imported := range s.imports {
			for _, rule := range rules {
				if under(imported, rule.library) && !under(s.dir, rule.homes...) {
					t.Errorf("%s imports %s, which belongs in %s: %s", s.path, imported,
						strings.Join(rule.homes, ", "), once)
				}
			}
		}
	}
}

// operators are packages that only dial what the operator named. These are the cluster's own nodes,
// authenticated by mutual TLS, and its services, in networks that customers must not reach.
// pkg/telemetry sends spans to the operator's collector with OpenTelemetry's own HTTP client.
// Stripe's library calls only Stripe. No customer names an address there.
var operators = []string{"controlplane/internal/port", "controlplane/internal/membership",
	"pkg/stream/kafka",
	"pkg/rowstore/clickhouse", "pkg/cache", "pkg/telemetry", "pkg/blobstore",
	"apiserver/payment/stripe"}

// TestEveryConnectionGoesThroughEgress keeps the address guard complete: dialing elsewhere would
// bypass it.
func TestEveryConnectionGoesThroughEgress(t *testing.T) {
	dials := map[string][]string{
		"net": {"Dial", "DialTimeout", "Dialer", "DialTCP", "DialUDP", "DefaultResolver",
			"LookupHost", "LookupIP"},
		"net/http": {"Get", "Post", "PostForm", "Head", "Client", "DefaultClient", "Transport",
			"DefaultTransport"},
		"github.com/valyala/fasthttp": {"Client", "HostClient", "PipelineClient", "LBClient", "Do",
			"DoTimeout",
			"DoDeadline", "DoRedirects", "Get", "GetTimeout", "GetDeadline", "Post", "Dial",
			"DialTimeout", "TCPDialer"},
	}
	for _, s := range sources(t) {
		if s.test || forTests(s.dir) || under(s.dir, "pkg/egress", "cmd", "bench", "examples") ||
			under(s.dir, operators...) {
			continue
		}
		if under(s.dir, "controlplane/internal/port") {
			// Node to node: mutual TLS with the cluster's own identities, never an address that a
			// customer names.
			continue
		}
		for library, names := range dials {
			for _, use := range uses(s, library) {
				if slices.Contains(names, use) {
					t.Errorf("%s uses %s.%s: every outbound connection goes through pkg/egress, "+
						"which alone checks addresses",
						s.path, path.Base(library), use)
				}
			}
		}
	}
}

// TestUnitsHaveNoLock keeps the work on a task a state machine: one caller at a time has it.
func TestUnitsHaveNoLock(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if s.test || !under(s.dir, "fetcher/internal/unit") {
			continue
		}
		seen++
		if slices.Contains(s.imports, "sync") {
			t.Errorf("%s imports sync: what units share is of fetcher/internal/memo", s.path)
		}
	}
	if seen == 0 {
		t.Error("no file of fetcher/internal/unit is seen: the rule has lost what it guards")
	}
}

// TestReplicatedStateIsDeterministic keeps clocks, randomness and the machine out of what every
// node must compute equally.
func TestReplicatedStateIsDeterministic(t *testing.T) {
	const reason = "every node must come to the same state from the same log; time is the " +
		"leader's stamp, and what is " +
		"random is inside the command"
	pure := []string{"controlplane/internal/fsm", "controlplane/internal/state",
		"controlplane/internal/command"}
	seen := 0
	for _, s := range sources(t) {
		if s.test || !under(s.dir, pure...) {
			continue
		}
		seen++
		for _, imported := range s.imports {
			if under(imported, "math/rand", "crypto/rand", "net", "os", "syscall",
				module+"/pkg/clock") {
				t.Errorf("%s imports %s: %s", s.path, imported, reason)
			}
		}
		for _, use := range uses(s, "time") {
			if slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer",
				"NewTicker", "Tick", "Sleep"}, use) {
				t.Errorf("%s uses time.%s: %s", s.path, use, reason)
			}
		}
	}
	if seen == 0 {
		t.Errorf("no file in %s: the rule has lost what it guards", strings.Join(pure, ", "))
	}
}

// uses returns the names that a file selects from an imported package.
func uses(s source, library string) []string {
	name := ""
	for _, spec := range s.file.Imports {
		if spec.Path.Value == strconv.Quote(library) {
			name = path.Base(library)
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "" {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if left, ok := selector.X.(*ast.Ident); ok && left.Name == name {
				found = append(found, selector.Sel.Name)
			}
		}
		return true
	})
	return found
}

// TestMoneyHasOneName: money is counted in micros, millionths of a euro; a cent has 10,000 of them.
func TestMoneyHasOneName(t *testing.T) {
	wrong := regexp.MustCompile(`(?i)micro-?_?cents?`)
	guarded := []string{".go", ".md", ".json", ".yml", ".yaml", ".txt", ".tpl", ".sql", ".sh",
		".py", ".ts", ".tsx", ".js", ".mjs", ".html", ".java", ".rs", ".toml"}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && unwritten(name) && name != "clients" && path.Base(name) != "testdata":
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(guarded, path.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if found := wrong.Find(text); found != nil {
			t.Errorf("%s says %q: money is in micros, millionths of a euro", name, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingHappensOnImport: no package has an init function.
func TestNothingHappensOnImport(t *testing.T) {
	for _, s := range sources(t) {
		for _, declaration := range s.file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: what a package needs is made by whoever uses it",
					s.path)
			}
		}
	}
}

// TestPackagesSayWhatTheyOwn: each package has a package comment, in exactly one file.
func TestPackagesSayWhatTheyOwn(t *testing.T) {
	comments := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		comments[s.dir] += 0
		if s.file.Doc == nil {
			continue
		}
		comments[s.dir]++
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command " + path.Base(s.dir) + " "
		}
		if text := s.file.Doc.Text(); !strings.HasPrefix(text, want) {
			t.Errorf("%s: the package comment begins %q, want %q", s.path,
				text[:min(len(text), 30)], want)
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s: %d package comments, want one that says what the package owns and "+
				"what it does not", dir, n)
		}
	}
}

// TestFoldersAreNamedAfterThings rejects names that say nothing.
func TestFoldersAreNamedAfterThings(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "lib",
		"base", "core", "tools"}
	top := append([]string{".", "cmd", "pkg", "testkit", "deploy", "bench", "e2e", "examples"},
		roles...)
	for _, s := range sources(t) {
		parts := strings.Split(s.dir, "/")
		if !slices.Contains(top, parts[0]) {
			t.Errorf("%s: %q is no folder of the layout; the folders are the architecture", s.path,
				parts[0])
		}
		for _, part := range parts {
			if slices.Contains(vague, part) {
				t.Errorf("%s: a folder called %q says nothing of what it owns", s.path, part)
			}
		}
	}
}

// TestSharedPackagesAreListed keeps pkg a closed list: a package that is not in its README does not
// belong there.
func TestSharedPackagesAreListed(t *testing.T) {
	listed := map[string]bool{}
	readme, err := os.Open("pkg/README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = readme.Close() }()
	line := regexp.MustCompile("^- `([a-z0-9]+)`: .{10,}")
	for lines := bufio.NewScanner(readme); lines.Scan(); {
		if match := line.FindStringSubmatch(lines.Text()); match != nil {
			listed[match[1]] = true
		}
	}
	for _, s := range sources(t) {
		rest, inside := strings.CutPrefix(s.dir, "pkg/")
		if !inside {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if _, known := listed[name]; !known {
			t.Errorf("pkg/%s has no line in pkg/README.md: a package enters pkg when two roles "+
				"need it, and says why", name)
		}
		listed[name] = false
	}
	for name, stale := range listed {
		if stale {
			t.Errorf("pkg/README.md lists %s, which is not there", name)
		}
	}
}

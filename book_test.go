package house_test

import (
	"fmt"
	"go/doc"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// texts returns the files that people read: code, documents and settings, by path from the root.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found, err := everyText()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d files found: the walk does not see the repository", len(found))
	}
	return found
}

// everyText is read once for all tests: none of them changes a file.
var everyText = sync.OnceValues(readTexts)

func readTexts() (map[string]string, error) {
	kinds := []string{".go", ".md", ".yml", ".yaml", ".sql", ".sh", ".proto"}
	found := map[string]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && unwritten(name):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(kinds, path.Ext(base)) && base != "Makefile":
			return nil
		}
		text, err := os.ReadFile(name)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	return found, err
}

// law is a kind of text that code and documents cite by number.
type law struct {
	word     string         // occurs in every citation, in upper or lower case
	citation *regexp.Regexp // its first group is one number or several
	heading  *regexp.Regexp // its first group is the number that a heading of home defines
	home     string         // pattern of the files with the headings
}

var laws = []law{
	{
		word:     "decision",
		citation: regexp.MustCompile(`(?i)\bdecisions? (\d+(?:(?:, | and | or )\d+)*)`),
		heading:  regexp.MustCompile(`(?m)^# (\d+)\. `),
		home:     "docs/decisions/[0-9]*.md",
	},
	{
		word:     "specification",
		citation: regexp.MustCompile(`(?i)\bspecification,? \(?(\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*)`),
		heading:  regexp.MustCompile(`(?m)^##+ (\d+(?:\.\d+)?)\.? `),
		home:     "docs/interface/README.md",
	},
	{
		word:     "architecture",
		citation: regexp.MustCompile(`(?i)\barchitecture,? step (\d+)`),
		heading:  regexp.MustCompile(`(?m)^### (\d+)\. `),
		home:     "docs/architecture.md",
	},
}

var (
	number = regexp.MustCompile(`\d+(?:\.\d+)?`)
	// newLine matches a line break within a sentence of a comment or document.
	newLine = regexp.MustCompile(`\n[ \t]*(?://|#|\*)?[ \t]*`)
)

// TestCitationsResolve: a reader can open whatever the code cites.
func TestCitationsResolve(t *testing.T) {
	all := texts(t)
	for _, l := range laws {
		defined := l.defined(t, all)
		cited := 0
		for name, text := range all {
			if name == "book_test.go" || !strings.Contains(strings.ToLower(text), l.word) {
				continue // most files skip the slow expression
			}
			for _, match := range l.citation.FindAllStringSubmatch(newLine.ReplaceAllString(text,
				" "), -1) {
				for _, n := range number.FindAllString(match[1], -1) {
					cited++
					if defined[n] == "" {
						t.Errorf("%s cites %q: no heading of %s has that number", name, match[0],
							l.home)
					}
				}
			}
		}
		if cited == 0 {
			t.Errorf("nothing cites %s: the rule has lost what it guards", l.home)
		}
	}
}

// defined returns the file of each number that a law defines.
func (l law) defined(t *testing.T, all map[string]string) map[string]string {
	t.Helper()
	defined := map[string]string{}
	for name, text := range all {
		if matches, _ := path.Match(l.home, name); !matches {
			continue
		}
		for _, match := range l.heading.FindAllStringSubmatch(text, -1) {
			if other := defined[match[1]]; other != "" {
				t.Errorf("%s and %s both define %s", other, name, match[1])
			}
			defined[match[1]] = name
		}
	}
	return defined
}

// TestDecisionsAreWhole: each decision has its number in name and heading, a status, three parts,
// and a line in the index.
func TestDecisionsAreWhole(t *testing.T) {
	names, err := filepath.Glob("docs/decisions/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(base, want) {
			t.Fatalf("%s stands where %s… has to: decisions are numbered without a gap", name, want)
		}
		head := decisionHead.FindStringSubmatch(string(text))
		if head == nil || head[1] != strconv.Itoa(i+1) {
			t.Errorf("%s does not begin with its number, its title and its status", name)
			continue
		}
		for _, part := range []string{"\n## Context\n", "\n## Decision\n", "\n## Consequence\n"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", name, strings.TrimSpace(part))
			}
		}
		if line := fmt.Sprintf("\n| %s | [%s](%s) | %s |\n", head[1], head[2], base,
			head[3]); !strings.Contains(string(index), line) {
			t.Errorf("docs/decisions/README.md has no line %q", strings.TrimSpace(line))
		}
	}
}

var decisionHead = regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (.+)\.\n`)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile("(?m)^#+ (.+)$")
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	fromRoot = regexp.MustCompile("`((?:apiserver|bench|billing|cmd|controlplane|deploy|docs|e2e|examples|fetcher|ingest|pkg|testkit)" +
		"/[a-zA-Z0-9_./-]+)`")
	goFile      = regexp.MustCompile("`([a-z_]+\\.go)`")
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksResolve follows every relative link of every document, including its anchor.
func TestLinksResolve(t *testing.T) {
	all, known := texts(t), map[string][]string{}
	followed := 0
	for name, text := range all {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			followed++
			file, anchor, _ := strings.Cut(match[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", name, match[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if known[target] == nil {
				known[target] = anchors(all[target])
			}
			if n := times(anchor, known[target]); n != 1 {
				t.Errorf("%s links to %s: %d headings of %s have that name", name, match[1], n,
					target)
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links were followed", followed)
	}
}

func times(text string, in []string) (n int) {
	for _, other := range in {
		if other == text {
			n++
		}
	}
	return n
}

// anchors returns the link targets of a document's headings.
func anchors(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		names = append(names, strings.ReplaceAll(
			notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}

// ofUsers are files that documents tell people to make.
var ofUsers = []string{"deploy/.env", "deploy/compose.override.yaml"}

// TestDocumentedPathsAreThere: the book names no file that has moved. It looks at paths from the
// root, and at Go files in the folder that a document is about.
func TestDocumentedPathsAreThere(t *testing.T) {
	seen := 0
	all := texts(t)
	for name, text := range all {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			continue
		}
		for _, match := range fromRoot.FindAllStringSubmatch(text, -1) {
			seen++
			if _, err := os.Stat(match[1]); err != nil && !slices.Contains(ofUsers, match[1]) {
				t.Errorf("%s tells of %s, which is not there", name, match[1])
			}
		}
		if path.Base(name) != "DESIGN.md" {
			continue
		}
		for _, match := range goFile.FindAllStringSubmatch(text, -1) {
			seen++
			if !hasFile(all, path.Dir(name), match[1]) {
				t.Errorf("%s tells of %s, which is nowhere below it", name, match[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d paths were found", seen)
	}
}

// stop matches a row of the table of one page's way: a file, and its functions or types.
var stop = regexp.MustCompile("(?m)^\\| `([a-z0-9_/]+\\.go)` \\|.*\\| (`.*`) \\|$")

// TestOnePageIsFollowed: the table of the files that handle a page is true, and short enough to be
// read.
func TestOnePageIsFollowed(t *testing.T) {
	const most = 25 // files
	all := texts(t)
	stops := stop.FindAllStringSubmatch(all["docs/architecture.md"], -1)
	if len(stops) < 10 || len(stops) > most {
		t.Errorf("the way of a page has %d files, at most %d", len(stops), most)
	}
	for _, found := range stops {
		for name := range strings.SplitSeq(found[2], ", ") {
			name = strings.Trim(name, "`")
			declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )` + name + `\b`)
			if !declared.MatchString(all[found[1]]) {
				t.Errorf("%s has no %s", found[1], name)
			}
		}
	}
}

// hasFile says whether a folder has a file of that name, however deep.
func hasFile(all map[string]string, folder, file string) bool {
	for name := range all {
		if under(path.Dir(name), folder) && path.Base(name) == file {
			return true
		}
	}
	return false
}

// TestSharedPackagesHaveExamples wants of every public package under pkg one example that runs.
func TestSharedPackagesHaveExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, s := range sources(t) {
		name, inside := strings.CutPrefix(s.dir, "pkg/")
		if !inside || strings.Contains(name, "internal") || strings.HasSuffix(name, "test") {
			continue
		}
		shown[name] = shown[name] || false
		for _, example := range doc.Examples(s.file) {
			shown[name] = shown[name] || example.Output != ""
		}
	}
	for name, has := range shown {
		if !has {
			t.Errorf("pkg/%s has no example with an // Output: write one that shows what it is for",
				name)
		}
	}
}

// TestVersionIsOne holds image and chart to the version that the binary says.
func TestVersionIsOne(t *testing.T) {
	number, err := os.ReadFile("cmd/shoal/internal/version/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(number))
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9a-z.]+)?$`).MatchString(version) {
		t.Errorf("%q is no semantic version", version)
	}
	for file, line := range map[string]string{
		"deploy/Dockerfile": "\nARG VERSION=" + version + "\n",
		"deploy/helm/shoal/Chart.yaml": "\nversion: " + version + "\nappVersion: \"" + version +
			"\"\n",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s does not say %q", file, strings.TrimSpace(line))
		}
	}
}

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// describeTools is where e2e/describe/install puts what the description is judged by.
const describeTools = ".describe"

// describedIn is the description, as a test of the API server holds it to the declarations.
const describedIn = "../apiserver/testdata/openapi.json"

// wantsDescribe skips what needs tools that are installed for it alone.
func wantsDescribe(t *testing.T) {
	t.Helper()
	if os.Getenv("SHOAL_DESCRIBE_SUITE") == "" {
		t.Skip("make describe runs it")
	}
}

// TestDescriptionIsClean has two public linters look at the description of the API. What the first
// passes over is named in its ignore file: the paths of the specification that it cannot tell
// apart, and the server can.
func TestDescriptionIsClean(t *testing.T) {
	wantsDescribe(t)
	ctx := suite.Within(t, suite.Patience)
	for name, command := range map[string][]string{
		"redocly": {"redocly", "lint", "--config", "redocly.yaml", "--format", "json",
			"--max-problems", "1000"},
		"spectral": {"spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"},
	} {
		t.Run(name, func(t *testing.T) {
			said := runTool(t, ctx, "node_modules/.bin", append(command, "../"+describedIn)...)
			if name == "redocly" && !strings.Contains(said, `"warnings": 0`) {
				t.Errorf("%s", said)
			}
		})
	}
}

// TestDescriptionMakesAClient generates a client from the description, which reads a page with it:
// group, scraper, run, wait, rows.
func TestDescriptionMakesAClient(t *testing.T) {
	wantsDescribe(t)
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1})
	s := newSingle(t, suite.Fast(), web)
	s.Up(t)
	ctx := suite.Within(t, suite.Patience)
	into := t.TempDir()
	runTool(t, ctx, "python/bin", "openapi-python-client", "generate", "--path",
		"../"+describedIn, "--meta", "none", "--output-path", filepath.Join(into, "shoal_client"))
	t.Setenv("PYTHONPATH", into)
	url := slices.Collect(web.URLs(1))[0]
	said := runTool(t, ctx, "python/bin", "python", "python/main.py", s.p.Server(), s.p.Key(), url)
	if !strings.HasPrefix(said, "COMPLETED 1 ") {
		t.Errorf("%s", said)
	}
}

// runTool runs an installed tool in the folder of its settings, and answers what it said.
func runTool(t *testing.T, ctx context.Context, folder string, command ...string) string {
	t.Helper()
	tool, err := filepath.Abs(filepath.Join(describeTools, folder, command[0]))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(ctx, tool, command[1:]...)
	run.Dir = "describe"
	run.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	said, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, said)
	}
	return string(said)
}

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

// describeTools is the folder where e2e/describe/install puts the tools that check the description.
const describeTools = ".describe"

// describedIn is the description; a test of the API server compares it with the declarations.
const describedIn = "../apiserver/testdata/openapi.json"

// wantsDescribe skips tests whose tools are only installed for them.
func wantsDescribe(t *testing.T) {
	t.Helper()
	if os.Getenv("SHOAL_DESCRIBE_SUITE") == "" {
		t.Skip("make describe runs it")
	}
}

// TestDescriptionIsClean runs two public linters on the description of the API. The settings of the
// first say which rules are off.
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

// oapiCodegen generates the Go client.
const oapiCodegen = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

// TestDescriptionMakesClients generates clients in three languages from the description. Each reads
// a page: group, scraper, run, wait, rows.
func TestDescriptionMakesClients(t *testing.T) {
	wantsDescribe(t)
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1})
	s := newSingle(t, suite.Fast(), web)
	s.Up(t)
	ctx := suite.Within(t, suite.Patience)
	given := []string{s.p.Server(), s.p.Key(), slices.Collect(web.URLs(1))[0]}
	described, err := filepath.Abs(describedIn)
	if err != nil {
		t.Fatal(err)
	}
	job := func(said string) {
		t.Helper()
		if !strings.Contains(said, "COMPLETED 1 ") {
			t.Errorf("%s", said)
		}
	}
	t.Run("python", func(t *testing.T) {
		into := t.TempDir()
		runTool(t, ctx, "python/bin", "openapi-python-client", "generate", "--path", described,
			"--meta", "none", "--output-path", filepath.Join(into, "shoal_client"))
		t.Setenv("PYTHONPATH", into)
		job(runTool(t, ctx, "python/bin", append([]string{"python", "python/main.py"},
			given...)...))
	})
	t.Run("typescript", func(t *testing.T) {
		into := copied(t, "describe/typescript")
		modules, err := filepath.Abs(filepath.Join(describeTools, "node_modules"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(modules, filepath.Join(into, "node_modules")); err != nil {
			t.Fatal(err)
		}
		runTool(t, ctx, "node_modules/.bin", "openapi-typescript", described, "-o",
			filepath.Join(into, "schema.d.ts"))
		runTool(t, ctx, "node_modules/.bin", "tsc", "-p", into)
		job(runIn(t, ctx, into, append([]string{"node", "main.js"}, given...)...))
	})
	t.Run("go", func(t *testing.T) {
		into := copied(t, "describe/go")
		if err := os.Mkdir(filepath.Join(into, "shoal"), 0o755); err != nil {
			t.Fatal(err)
		}
		runIn(t, ctx, into, "go", "run", oapiCodegen, "-config", "generate.yaml", "-o",
			"shoal/shoal.gen.go", described)
		job(runIn(t, ctx, into, append([]string{"go", "run", "."}, given...)...))
	})
}

// copied copies a client's folder, in which the client is generated.
func copied(t *testing.T, folder string) string {
	t.Helper()
	into := t.TempDir()
	if err := os.CopyFS(into, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return into
}

// runTool runs an installed tool in its settings' folder, and returns its output.
func runTool(t *testing.T, ctx context.Context, folder string, command ...string) string {
	t.Helper()
	tool, err := filepath.Abs(filepath.Join(describeTools, folder, command[0]))
	if err != nil {
		t.Fatal(err)
	}
	return runIn(t, ctx, "describe", append([]string{tool}, command[1:]...)...)
}

// runIn runs a command in a folder, and returns its output.
func runIn(t *testing.T, ctx context.Context, folder string, command ...string) string {
	t.Helper()
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Dir = folder
	run.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	said, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, said)
	}
	return string(said)
}

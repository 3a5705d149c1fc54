package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
)

// TestReferenceIsAsBuilt compares the reference with the declarations it is generated from; -update
// regenerates it.
func TestReferenceIsAsBuilt(t *testing.T) {
	const folder = "../../docs/reference"
	for name, text := range map[string]string{
		"errors.md": errorReference(), "metrics.md": metricReference(t),
		"commands.md":         commandReference(t),
		"../configuration.md": configurationReference(t),
	} {
		path := filepath.Join(folder, name)
		if *Update {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
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
	}
}

// generated says how a page of the reference is made.
const generated = "Written from the code by `go test ./cmd/shoal -run TestReferenceIsAsBuilt " +
	"-update`.\n\n"

func errorReference() string {
	var answers, pages strings.Builder
	catalog := fault.Catalog()
	codes := slices.SortedFunc(maps.Keys(catalog), func(a, b fault.Code) int {
		return cmp.Or(cmp.Compare(catalog[a].Status, catalog[b].Status), cmp.Compare(a, b))
	})
	for _, code := range codes {
		if entry := catalog[code]; entry.Status != 0 {
			fmt.Fprintf(&answers, "| %d | `%s` | %s |\n", entry.Status, code, entry.Title)
		} else {
			fmt.Fprintf(&pages, "| `%s` | %s | %s |\n", code, entry.Title, fault.Advice(code, 0))
		}
		if code != fault.PageStatus {
			continue
		}
		for _, status := range slices.Sorted(maps.Keys(fault.AdviceByStatus())) {
			said := strconv.Itoa(status)
			if status < 10 {
				said += "xx"
			}
			fmt.Fprintf(&pages, "| `%s` %s | | %s |\n", code, said,
				fault.AdviceByStatus()[status])
		}
	}
	return "# Error codes\n\n" + generated +
		"An answer that is not a success is a problem document. Its `code` is one of these; its " +
		"`errors` name the fields.\n\n" +
		"| Status | Code | Title |\n|---|---|---|\n" + answers.String() +
		"\nA link that failed, or a run that ended early, has one of these. Such a link costs " +
		"nothing.\n\n" +
		"| Code | Title | What to do |\n|---|---|---|\n" + pages.String()
}

func metricReference(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("# Metrics\n\n" + generated +
		"Every process serves the metrics of its roles at `/metrics` of `--ops-listen`, in the " +
		"text format of Prometheus.\n\n" +
		"| Metric | Type | Labels | What it says |\n|---|---|---|---|\n")
	for _, m := range declared(t, identity.Roles()...).Declared() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels,
			strings.ReplaceAll(m.Help, "|", "\\|"))
	}
	return text.String()
}

// commandReference is the help of every command, as printed.
func commandReference(t *testing.T) string {
	t.Helper()
	parser, err := kong.New(&grammar{}, kong.Name("shoal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "100")
	var text strings.Builder
	text.WriteString("# Commands\n\n" + generated)
	for _, leaf := range append([]*kong.Node{parser.Model.Node}, parser.Model.Leaves(true)...) {
		path := strings.Fields(leaf.Path())
		var help bytes.Buffer
		if code := run(context.Background(), append(path, "--help"),
			terminal.Terminal{Out: &help, Err: &help}, nil); code != terminal.ExitOK {
			t.Fatalf("%v --help: %d: %s", path, code, help.String())
		}
		fmt.Fprintf(&text, "## %s\n\n```text\n%s\n```\n\n", strings.TrimSpace("shoal "+leaf.Path()),
			strings.TrimSpace(help.String()))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// configurationReference lists every setting of the service with its three names: flag, environment
// variable and key of the file.
func configurationReference(t *testing.T) string {
	t.Helper()
	parser, err := kong.New(&grammar{}, kong.Name("shoal"), kong.DefaultEnvars("SHOAL"),
		kong.ValueFormatter(describe))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("# Configuration\n\n" + generated +
		"Every setting of `shoal serve` is a flag, a variable of the environment, and a line of " +
		"the file that `--config` " +
		"names:\n\n    --host-rate=2        SHOAL_HOST_RATE=2        host-rate = 2\n\n" +
		"Flags override the environment, which overrides the file. An unknown line " +
		"is refused. " +
		"Settings of other commands are in [the list of commands](reference/commands.md).\n")
	serve := slices.IndexFunc(parser.Model.Children,
		func(n *kong.Node) bool { return n.Name == "serve" })
	groups, titles := map[string][]*kong.Flag{}, []string{}
	for _, flag := range parser.Model.Children[serve].Flags {
		if flag.Hidden || flag.Name == "help" {
			continue
		}
		title := "general"
		if flag.Group != nil {
			title = flag.Group.Title
		}
		if groups[title] == nil {
			titles = append(titles, title)
		}
		groups[title] = append(groups[title], flag)
	}
	for _, title := range titles {
		fmt.Fprintf(&text, "\n## %s\n\n| flag and line | environment | default | what it is "+
			"|\n|---|---|---|---|\n", title)
		for _, flag := range groups[title] {
			unless := ""
			if flag.Default != "" {
				unless = "`" + flag.Default + "`"
			}
			fmt.Fprintf(&text, "| `%s` | `%s` | %s | %s |\n", flag.Name,
				strings.Join(flag.Envs, "`, `"), unless,
				strings.ReplaceAll(flag.Help, "|", "\\|"))
		}
	}
	return text.String()
}

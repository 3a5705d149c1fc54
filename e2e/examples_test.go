package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestExamples runs what examples shows people, each on a list of its own, and counts the rows.
func TestExamples(t *testing.T) {
	t.Parallel()
	const pages = 12
	web := newWeb(t, synthweb.Config{Hosts: pages, PagesPerHost: 1})
	s := newSingle(t, suite.Fast(), web)
	s.Up(t)
	ctx := suite.Within(t, suite.Patience)
	if _, err := s.Command(ctx, "wallet", "adjust", "--micros", "1000000", "--note",
		"examples"); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "list.txt")
	addresses := strings.Join(slices.Collect(web.URLs(pages)), "\n") + "\n"
	if err := os.WriteFile(list, []byte(addresses), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "example")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "shoal.dev/shoal/examples/go")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for name, command := range map[string][]string{
		"curl":   {"../examples/curl/run.sh"},
		"python": {"python3", "../examples/python/run.py"},
		"go":     {program},
	} {
		t.Run(name, func(t *testing.T) {
			if needs := exampleNeeds[name]; needs != "" {
				if _, err := exec.LookPath(needs); err != nil {
					t.Skipf("%s is not there; make test says so", needs)
				}
			}
			if rows := s.example(t, ctx, append(command, list, "of "+name)); rows != pages {
				t.Errorf("%d rows, want %d", rows, pages)
			}
		})
	}
}

// exampleNeeds is what an example needs beside the machine's shell.
var exampleNeeds = map[string]string{"curl": "curl", "python": "python3"}

// example runs one and counts the rows that it prints: a row a line, or pages of them.
func (s *single) example(t *testing.T, ctx context.Context, command []string) (rows int) {
	t.Helper()
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Env = append(os.Environ(), "SHOAL_SERVER="+s.p.Server(), "SHOAL_KEY="+s.p.Key())
	var said bytes.Buffer
	run.Stderr = &said
	printed, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, printed, said.String())
	}
	for line := range bytes.Lines(printed) {
		var page struct {
			Title string
			Items []struct{ Title string }
		}
		if err := json.Unmarshal(line, &page); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, row := range page.Items {
			if row.Title != "" {
				rows++
			}
		}
		if page.Title != "" {
			rows++
		}
	}
	return rows
}

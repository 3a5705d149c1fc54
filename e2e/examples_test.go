package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
	"shoal.dev/shoal/testkit/tool"
)

// TestExamples runs the programs in examples, each on its own list, and counts the rows.
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
	for name, command := range examples(t, ctx) {
		t.Run(name, func(t *testing.T) {
			needExample(t, name)
			if rows := s.example(t, ctx, append(command, list, "of "+name)); rows != pages {
				t.Errorf("%d rows, want %d", rows, pages)
			}
		})
	}
}

// TestExamplesWatchToTheEnd: a broken stream does not count as the end of the run. If the run does
// not succeed, the program ends with an error.
func TestExamplesWatchToTheEnd(t *testing.T) {
	t.Parallel()
	ctx := suite.Within(t, suite.Patience)
	list := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(list, []byte("https://a.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, command := range examples(t, ctx) {
		for _, state := range []string{"SUCCESS", "FAILED", "CANCELLED"} {
			t.Run(name+" "+state, func(t *testing.T) {
				needExample(t, name)
				s := httptest.NewServer(breakOff(state))
				defer s.Close()
				words := append(slices.Clone(command), list, "a")
				run := exec.CommandContext(ctx, words[0], words[1:]...)
				run.Env = append(os.Environ(), "SHOAL_SERVER="+s.URL, "SHOAL_KEY=k")
				said, err := run.CombinedOutput()
				if (err == nil) != (state == "SUCCESS") || !bytes.Contains(said, []byte(state)) {
					t.Errorf("%v\n%s", err, said)
				}
			})
		}
	}
}

// breakOff is a service whose first stream breaks after a frame. The second one continues there,
// and the run ends in state.
func breakOff(state string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		frame := func(id, state string) {
			fmt.Fprintf(w, "id: %s\nevent: status\ndata: {\"state\":%q,\"totalRequests\":1,"+
				"\"totalLinks\":1}\n\n", id, state)
		}
		switch last := r.Header.Get("Last-Event-ID"); {
		case r.Method == http.MethodPut:
			fmt.Fprint(w, `{"id":"g"}`)
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"jobId":"j"}`)
		case r.URL.Path == "/api/scraper/data":
			fmt.Fprint(w, `{"items":[{"title":"a"}],"nextCursor":null}`)
		case last == "":
			frame("7-1", "RUNNING")
		case last == "7-1":
			frame("7-2", state)
		default:
			http.Error(w, last, http.StatusBadRequest)
		}
	}
}

// examples returns the command of each example, built if needed.
func examples(t *testing.T, ctx context.Context) map[string][]string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "example")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "shoal.dev/shoal/examples/go")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return map[string][]string{
		"curl":   {"../examples/curl/run.sh"},
		"python": {"python3", "../examples/python/run.py"},
		"go":     {program},
	}
}

// needExample skips an example that this machine cannot run.
func needExample(t *testing.T, name string) {
	t.Helper()
	if needs := exampleNeeds[name]; needs != "" {
		tool.Need(t, needs)
	}
}

// exampleNeeds is the program that an example needs besides the shell.
var exampleNeeds = map[string]string{"curl": "curl", "python": "python3"}

// example runs one and counts the rows that it prints: one per line, or in pages.
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

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spoken is the output of `go test -json` for a package with a test that passes and one with the
// given verdict.
func spoken(verdict string, seconds string) string {
	const at = `"Package":"shoal.dev/shoal/pkg/one"`
	return `{"Action":"start",` + at + `}
{"Action":"run",` + at + `,"Test":"TestGood"}
{"Action":"output",` + at + `,"Test":"TestGood","Output":"    good_test.go:3: chatter\n"}
{"Action":"pass",` + at + `,"Test":"TestGood","Elapsed":0.1}
{"Action":"output",` + at + `,"Test":"TestOther","Output":"    other_test.go:7: what it says\n"}
{"Action":"` + verdict + `",` + at + `,"Test":"TestOther","Elapsed":0.1}
{"Action":"output",` + at + `,"Output":"the package's line\n"}
{"Action":"` + verdict + `",` + at + `,"Elapsed":` + seconds + `}
`
}

func TestReport(t *testing.T) {
	budgets := filepath.Join(t.TempDir(), "budgets")
	if err := os.WriteFile(budgets, []byte("# seconds\npkg/one 40 # more than is usual\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		said, budgets string
		wantError     string
		wants, not    []string
	}{
		"passes": {said: spoken("pass", "40"), budgets: budgets,
			wants: []string{"the package's line"}, not: []string{"chatter", "what it says"}},
		"fails": {said: spoken("fail", "1"), wantError: "tests failed",
			wants: []string{"what it says", "the package's line"}, not: []string{"chatter"}},
		"is slow": {said: spoken("pass", "40.1"), budgets: budgets, wantError: "budgets",
			wants: []string{"pkg/one took 40 s, its budget is 40 s"}},
		"has no budget": {said: strings.ReplaceAll(spoken("pass", "301"), "pkg/one", "pkg/two"),
			budgets: budgets, wantError: "budgets"},
		"is not judged": {said: spoken("pass", "4000")},
		"does not build": {said: `{"ImportPath":"shoal.dev/shoal/pkg/one","Action":"build-output","Output":"one.go:1: no\n"}
{"ImportPath":"shoal.dev/shoal/pkg/one","Action":"build-fail"}
`, wantError: "tests failed", wants: []string{"one.go:1: no"}},
		"what the go command says": {said: "go: no such tool\n", wants: []string{"no such tool"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(strings.NewReader(c.said), &out, c.budgets)
			if (err == nil) != (c.wantError == "") || err != nil &&
				!strings.Contains(err.Error(), c.wantError) {
				t.Errorf("the verdict is %v, want %q", err, c.wantError)
			}
			for _, text := range c.wants {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%q is not told:\n%s", text, out.String())
				}
			}
			for _, text := range c.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("%q is told:\n%s", text, out.String())
				}
			}
		})
	}
}

// TestNodesAreNotBrief: the end shows what a test found wrong, without the nodes' output.
func TestNodesAreNotBrief(t *testing.T) {
	const at = `"Package":"shoal.dev/shoal/pkg/one","Test":"TestNodes"`
	var out bytes.Buffer
	err := run(strings.NewReader(`{"Action":"output",`+at+`,"Output":"    a_test.go:3: wrong\n"}
{"Action":"output",`+at+`,"Output":"    a_test.go:9: == node cp1 said:\n"}
{"Action":"output",`+at+`,"Output":"        a line of it\n"}
{"Action":"fail",`+at+`}
`), &out, "")
	_, brief, _ := strings.Cut(out.String(), "failed: ")
	if err == nil || brief != "shoal.dev/shoal/pkg/one TestNodes\n    a_test.go:3: wrong\n" {
		t.Errorf("%v, and the end tells:\n%s", err, brief)
	}
}

// TestLongestAreNamed: only the slowest tests are named, in order.
func TestLongestAreNamed(t *testing.T) {
	budgets := filepath.Join(t.TempDir(), "budgets")
	if err := os.WriteFile(budgets, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said, out bytes.Buffer
	for i := range 2 * longest {
		fmt.Fprintf(&said, `{"Action":"pass","Package":"a/b/one","Test":"Test%02d","Elapsed":%d}`+"\n",
			i, worthSaying-5+i)
		fmt.Fprintf(&said, `{"Action":"pass","Package":"a/b/one","Test":"Test%02d/part","Elapsed":90}`+
			"\n", i)
	}
	if err := run(&said, &out, budgets); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != longest || lines[0] != "took   34 s: a/b/one Test19" ||
		lines[9] != "took   25 s: a/b/one Test10" {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}

// TestMessagesOfFailuresAreLast: the end of a log shows what was wrong.
func TestMessagesOfFailuresAreLast(t *testing.T) {
	const output = `{"Action":"output","Package":"a/b/one","Test":"TestBad","Output":"%s\n"}` + "\n"
	said := fmt.Sprintf(output, "    bad_test.go:7: first") +
		fmt.Sprintf(output, "        a process said so") +
		fmt.Sprintf(output, "    bad_test.go:9: "+strings.Repeat("x", 2*briefBytes)) +
		`{"Action":"fail","Package":"a/b/one","Test":"TestBad","Elapsed":1}` + "\n" +
		`{"Action":"output","Package":"a/b/one","Output":"FAIL\n"}` + "\n" +
		`{"Action":"fail","Package":"a/b/one","Elapsed":1}` + "\n"
	var out bytes.Buffer
	if err := run(strings.NewReader(said), &out, ""); err == nil {
		t.Error("a failure passes")
	}
	_, last, _ := strings.Cut(out.String(), "failed: a/b/one TestBad\n")
	lines := strings.Split(strings.TrimSpace(last), "\n")
	if len(lines) != 2 || lines[0] != "bad_test.go:7: first" || len(lines[1]) != briefBytes {
		t.Errorf("the end is %q", last)
	}
}

// TestCutOffIsTold: a test has no verdict when another goroutine's panic ends its process. What it
// said is told nevertheless, and the end shows the panic.
func TestCutOffIsTold(t *testing.T) {
	const output = `{"Action":"output","Package":"a/b/one","Test":"%s","Output":"%s\n"}` + "\n"
	said := fmt.Sprintf(output, "TestDying", "=== RUN   TestDying") +
		fmt.Sprintf(output, "TestDying/part", "a line before") +
		fmt.Sprintf(output, "TestDying/part", "panic: no such page") +
		fmt.Sprintf(output, "TestDying/part", "goroutine 7 [running]:") +
		`{"Action":"output","Package":"a/b/one","Output":"FAIL\ta/b/one\t1s\n"}` + "\n" +
		`{"Action":"fail","Package":"a/b/one","Elapsed":1}` + "\n"
	var out bytes.Buffer
	if err := run(strings.NewReader(said), &out, ""); err == nil {
		t.Error("a failure passes")
	}
	told, last, _ := strings.Cut(out.String(), "cut off: a/b/one TestDying/part\n")
	if !strings.Contains(told, "a line before\npanic: no such page\n") ||
		last != "panic: no such page\ngoroutine 7 [running]:\n" {
		t.Errorf("it tells:\n%s", out.String())
	}
}

func TestBadBudgets(t *testing.T) {
	for _, text := range []string{"pkg/one", "pkg/one fast", "pkg/one 0", "pkg/one 3 4"} {
		if _, err := readBudgets(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

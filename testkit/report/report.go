// Command report reads the output of `go test -json` and prints it like `go test`, with failures in
// full and their messages again at the end. It exits with 1 if a test failed, or if a package took
// longer than its budget. With budgets it also names the slowest tests:
//
//	go test -json ./... | go run ./testkit/report -budgets .ci/budgets
//
// A file of budgets has a line for each package that may take longer than others: its path in the
// module and seconds.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// usual is the budget of a package without its own, in seconds.
const usual = 300

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

func main() {
	budgets := flag.String("budgets", "", "file with the seconds that packages may take; none: "+
		"no package is too slow")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *budgets); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, file string) error {
	most := map[string]float64{}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if most, err = readBudgets(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	r := &reporter{out: out, most: most, bounded: file != "", said: map[string]*strings.Builder{}}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.hear(line)
		}
		if errors.Is(err, io.EOF) {
			return r.verdict()
		}
		if err != nil {
			return err
		}
	}
}

// readBudgets reads lines of a package's path and seconds; '#' begins a comment.
func readBudgets(text string) (map[string]float64, error) {
	most := map[string]float64{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		seconds, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil || len(words) != 2 || seconds <= 0 {
			return nil, fmt.Errorf("%q is no package and seconds", strings.TrimSpace(line))
		}
		most[words[0]] = seconds
	}
	return most, nil
}

// reporter reports what packages and tests did.
type reporter struct {
	out     io.Writer
	most    map[string]float64 // seconds by package
	bounded bool
	said    map[string]*strings.Builder // by package and test, until it ends
	failed  bool
	slow    []string
	ended   []event  // top-level tests that took worthSaying or more
	brief   []string // what verdict repeats about failed tests
}

// hear handles one line. Other lines than events are printed as they are: the go command reports
// build errors so.
func (r *reporter) hear(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = r.out.Write(line)
		return
	}
	r.time(e)
	switch id := e.Package + " " + e.Test; e.Action {
	case "build-output":
		_, _ = io.WriteString(r.out, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		r.keep(id, e)
	case "fail":
		r.failed = true
		if e.Test != "" {
			r.shorten("failed", id)
		}
		r.tell(id)
		if e.Test == "" {
			r.tellCutOff(e.Package)
		}
		r.judge(e)
	case "pass", "skip":
		if e.Test == "" {
			r.tell(id)
			r.judge(e)
		}
		delete(r.said, id)
	}
}

// keep stores a test's output until it is known whether it fails. Of a package, only the verdict
// matters.
func (r *reporter) keep(id string, e event) {
	if e.Test == "" && (e.Output == "PASS\n" || strings.Contains(e.Output, "[no test files]")) {
		return
	}
	if r.said[id] == nil {
		r.said[id] = &strings.Builder{}
	}
	r.said[id].WriteString(e.Output)
}

// message matches the first line of a test's log or error message.
var message = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// lastWords matches the line with which the runtime begins to say why a process dies.
var lastWords = regexp.MustCompile(`(?m)^(panic|fatal error|SIG[A-Z]+): `)

// Bounds of what is repeated about a failed test.
const (
	briefLines = 25  // the last messages, the first of a trace
	briefBytes = 300 // of each
)

// shorten keeps a test's messages and the beginning of the trace with which its process died. So
// the end of a log alone shows what was wrong. Output of the test's processes may be a thousand
// times as long. Neither it nor the line that announces it is kept.
func (r *reporter) shorten(verdict, id string) {
	if r.said[id] == nil {
		return
	}
	text := r.said[id].String()
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if message.MatchString(line) && !strings.HasSuffix(line, " said:") {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-briefLines):]
	if at := lastWords.FindStringIndex(text); at != nil {
		trace := strings.Split(strings.TrimRight(text[at[0]:], "\n"), "\n")
		lines = append(lines, trace[:min(len(trace), briefLines)]...)
	}
	r.brief = append(r.brief, verdict+": "+id)
	for _, line := range lines {
		r.brief = append(r.brief, line[:min(len(line), briefBytes)])
	}
}

// tellCutOff tells what tests without a verdict said. They have none when their process dies, as in
// a panic of a goroutine that is not the test's own.
func (r *reporter) tellCutOff(name string) {
	for _, id := range slices.Sorted(maps.Keys(r.said)) {
		if strings.HasPrefix(id, name+" ") {
			r.shorten("cut off", id)
			r.tell(id)
		}
	}
}

func (r *reporter) tell(id string) {
	if said := r.said[id]; said != nil {
		_, _ = io.WriteString(r.out, said.String())
		delete(r.said, id)
	}
}

// judge compares what a package took with its budget.
func (r *reporter) judge(e event) {
	if e.Test != "" || !r.bounded {
		return
	}
	_, path, _ := strings.Cut(e.Package, "/") // without the host
	_, path, _ = strings.Cut(path, "/")       // without the module's name
	most, named := r.most[path]
	if !named {
		most = usual
	}
	if e.Elapsed > most {
		r.slow = append(r.slow,
			fmt.Sprintf("%s took %.0f s, its budget is %.0f s", e.Package, e.Elapsed, most))
	}
}

// Bounds of the report on the slowest tests.
const (
	longest     = 10
	worthSaying = 20 // seconds: a faster test is not named
)

// time stores how long a test took.
func (r *reporter) time(e event) {
	if (e.Action == "pass" || e.Action == "fail") && e.Test != "" &&
		!strings.Contains(e.Test, "/") && e.Elapsed >= worthSaying {
		r.ended = append(r.ended, e)
	}
}

// nameLongest names the slowest tests, slowest first.
func (r *reporter) nameLongest() {
	if !r.bounded {
		return
	}
	slices.SortStableFunc(r.ended, func(a, b event) int {
		return cmp.Compare(b.Elapsed, a.Elapsed)
	})
	for _, e := range r.ended[:min(len(r.ended), longest)] {
		fmt.Fprintf(r.out, "took %4.0f s: %s %s\n", e.Elapsed, e.Package, e.Test)
	}
}

// verdict returns nil if everything passed in time.
func (r *reporter) verdict() error {
	r.nameLongest()
	for _, line := range r.brief {
		fmt.Fprintln(r.out, line)
	}
	for _, line := range r.slow {
		fmt.Fprintln(r.out, "slow:", line)
	}
	switch {
	case r.failed:
		return errors.New("tests failed")
	case len(r.slow) > 0:
		return errors.New("packages took longer than their budgets (.ci/budgets)")
	}
	return nil
}

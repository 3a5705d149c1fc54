// Command report reads what `go test -json` says and tells it as `go test` does, with what failed
// in full and its messages once more at the end. It ends with 1 when a test failed, or when a
// package took more seconds than its budget. With budgets it also names the tests that took
// longest, so that it is known where the minutes go:
//
//	go test -json ./... | go run ./testkit/report -budgets .ci/budgets
//
// A file of budgets has a line for each package that may take longer than the others: its path in
// the module and seconds.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// usual is what a package may take that has no budget of its own, in seconds.
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

// reporter tells what packages and tests did.
type reporter struct {
	out     io.Writer
	most    map[string]float64 // seconds by package
	bounded bool
	said    map[string]*strings.Builder // by package and test, until it ends
	failed  bool
	slow    []string
	ended   []event  // tests that are no part of another and took worthSaying or more
	brief   []string // what verdict says again of tests that failed
}

// hear takes one line. What is no event is told as it is: the go command says so what it cannot
// build.
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
		r.shorten(id, e)
		r.tell(id)
		r.judge(e)
	case "pass", "skip":
		if e.Test == "" {
			r.tell(id)
			r.judge(e)
		}
		delete(r.said, id)
	}
}

// keep remembers what a test says until it is known whether it fails. Of a package, the verdict
// alone is of interest.
func (r *reporter) keep(id string, e event) {
	if e.Test == "" && (e.Output == "PASS\n" || strings.Contains(e.Output, "[no test files]")) {
		return
	}
	if r.said[id] == nil {
		r.said[id] = &strings.Builder{}
	}
	r.said[id].WriteString(e.Output)
}

// message is the first line of what a test logs or finds wrong.
var message = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// What is said again of a test that failed.
const (
	briefLines = 25  // the last messages
	briefBytes = 300 // of each
)

// shorten keeps the messages of a test that failed: the end of a log alone has to tell what was
// wrong. What the test's processes said may be a thousand times as long; neither it nor the line
// that announces it is kept.
func (r *reporter) shorten(id string, e event) {
	if e.Test == "" || r.said[id] == nil {
		return
	}
	var messages []string
	for line := range strings.Lines(r.said[id].String()) {
		line = strings.TrimRight(line, "\n")
		if message.MatchString(line) && !strings.HasSuffix(line, " said:") {
			messages = append(messages, line[:min(len(line), briefBytes)])
		}
	}
	r.brief = append(r.brief, "failed: "+id)
	r.brief = append(r.brief, messages[max(0, len(messages)-briefLines):]...)
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
	_, path, _ := strings.Cut(e.Package, "/") // behind the host
	_, path, _ = strings.Cut(path, "/")       // behind the module's name
	most, named := r.most[path]
	if !named {
		most = usual
	}
	if e.Elapsed > most {
		r.slow = append(r.slow,
			fmt.Sprintf("%s took %.0f s, its budget is %.0f s", e.Package, e.Elapsed, most))
	}
}

// What is said of the tests that took longest.
const (
	longest     = 10
	worthSaying = 20 // seconds: a test that took less is not named
)

// time remembers how long a test took.
func (r *reporter) time(e event) {
	if (e.Action == "pass" || e.Action == "fail") && e.Test != "" &&
		!strings.Contains(e.Test, "/") && e.Elapsed >= worthSaying {
		r.ended = append(r.ended, e)
	}
}

// nameLongest names the tests that took longest, the slowest first.
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

// verdict is nil when everything passed in time.
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

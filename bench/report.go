package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/bench/measure"
)

// report is the result of a bench run, and the shape of the JSON file.
type report struct {
	Date        string `json:"date"` // UTC
	Machine     string `json:"machine"`
	Cores       int    `json:"cores"`
	Load        string `json:"load"` // Linux's load average over the last minute
	Go          string `json:"go"`
	Commit      string `json:"commit"`
	Command     string `json:"command"`
	Pages       int    `json:"pages"`
	WarmUp      int    `json:"warmUp"`
	Concurrency int    `json:"concurrency"`
	// with a field that the page does not have
	Absent   bool                `json:"absent,omitempty"`
	Order    []string            `json:"order"`
	Missing  []string            `json:"notInstalled,omitempty"`
	Versions map[string]string   `json:"versions,omitempty"` // of the jobs
	Rounds   map[string][]sample `json:"rounds"`             // by contender
	Stages   []stageShare        `json:"stages,omitempty"`
}

func newReport(ctx context.Context, o options) *report {
	r := &report{
		Date: time.Now().UTC().Format("2006-01-02 15:04"), Machine: measure.Machine(),
		Cores: runtime.NumCPU(), Load: measure.Load(),
		Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, Commit: commit(ctx),
		Pages: o.pages, WarmUp: o.warmUp, Concurrency: o.concurrency, Absent: o.absent,
		Order: o.contenders, Missing: o.missing, Rounds: map[string][]sample{},
		Versions: map[string]string{},
	}
	for _, name := range o.contenders {
		if isJob(name) {
			r.Versions[name] = version(o.peers, name)
		}
	}
	return r
}

func (r *report) add(name string, s sample) { r.Rounds[name] = append(r.Rounds[name], s) }

// spread is the minimum, median and maximum of some values.
type spread struct{ min, median, max float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1]}
}

// of returns one figure over all rounds of a contender.
func (r *report) of(name string, figure func(sample) float64) spread {
	var values []float64
	for _, s := range r.Rounds[name] {
		values = append(values, figure(s))
	}
	return spreadOf(values)
}

// ratios compares a contender's pages per CPU-second with another's, round by round: if the machine
// slows down, it slows both.
func (r *report) ratios(name, to string) (spread, bool) {
	var values []float64
	for i, s := range r.Rounds[name] {
		if i < len(r.Rounds[to]) {
			values = append(values, s.perCPUSecond()/r.Rounds[to][i].perCPUSecond())
		}
	}
	if len(values) == 0 {
		return spread{}, false
	}
	return spreadOf(values), true
}

// markdown is the report for people.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Pages per CPU-second, %s\n\n", r.Date)
	fmt.Fprintf(&b, "%s, %d cores, load %s before; %s; commit %s\n\n    %s\n\n", r.Machine, r.Cores,
		r.Load, r.Go, r.Commit,
		r.Command)
	fmt.Fprintf(&b, "%d pages a round after %d to warm up, %d requests under way, %d rounds. "+
		"Median of the rounds, the "+
		"smallest and largest in brackets.\n\n", r.Pages, r.WarmUp, r.Concurrency,
		len(r.Rounds[r.Order[0]]))
	if r.Absent {
		b.WriteString("With a sixth field, which the page does not have: all of the page must " +
			"be read.\n\n")
	}
	b.WriteString("| contender | pages per CPU-second | CPU a page | pages/s | peak RSS | × " +
		"fasthttp+goquery | rows |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, name := range r.Order {
		per := r.of(name, sample.perCPUSecond)
		ratio := "–"
		if s, ok := r.ratios(name, fasthttpGoquery); ok {
			ratio = fmt.Sprintf("**%.2f** [%.2f–%.2f]", s.median, s.min, s.max)
		}
		rows := r.Rounds[name][0].Rows
		if rows == "" {
			rows = "none"
		}
		fmt.Fprintf(&b, "| %s | **%.0f** [%.0f–%.0f] | %.1f µs | %.0f | %.0f MB | %s | %s |\n",
			name, per.median, per.min,
			per.max, 1e6/per.median, r.of(name, sample.perSecond).median,
			r.of(name, func(s sample) float64 { return float64(s.RSS) / 1e6 }).median, ratio, rows)
	}
	if s, ok := r.ratios(wholeLoop, loopBefore); ok {
		fmt.Fprintf(&b, "\nThe whole loop brings **%.2f** [%.2f–%.2f] times the pages per "+
			"CPU-second of the binary before.\n", s.median, s.min, s.max)
	}
	b.WriteString("\n")
	for _, c := range contenders() {
		if slices.Contains(r.Order, c.name) {
			fmt.Fprintf(&b, "- %s: %s", c.name, c.about)
			if text, ok := r.Versions[c.name]; ok {
				fmt.Fprintf(&b, " (%s)", text)
			}
			b.WriteString("\n")
		}
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, "\nNot installed: %s. Command: %s\n", strings.Join(r.Missing, ", "),
			installPeers)
	}
	if len(r.Stages) > 0 {
		b.WriteString("\n" + stageTable(r.Stages))
	}
	return b.String()
}

// save writes the report to a directory, named after the day and the processor, and returns the
// path without extension. A later run of the same day replaces an earlier one.
func (r *report) save(dir string) (string, error) {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	path := filepath.Join(dir, r.fileName(r.Absent))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("-out: %w", err)
	}
	return path, errors.Join(os.WriteFile(path+".md", []byte(r.markdown()), 0o644),
		os.WriteFile(path+".json", append(encoded, '\n'), 0o644), r.writeChart(dir))
}

// fileName is the file name of the day's run with or without the absent field, without extension.
func (r *report) fileName(absent bool) string {
	day, _, _ := strings.Cut(r.Date, " ")
	name := day + "-" + measure.Slug(r.Machine)
	if absent {
		name += "-absent"
	}
	return name
}

// commit is the measured commit, and whether there are changes to it.
func commit(ctx context.Context) string {
	hash, err := newCommand(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	changes, err := newCommand(ctx, "git", "status", "--porcelain", "--", "*.go", "go.mod").Output()
	if err != nil || len(changes) > 0 {
		text += " with changes"
	}
	return text
}

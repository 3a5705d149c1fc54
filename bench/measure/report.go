package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is the result of one measure, and the shape of the JSON file.
type Report struct {
	Bench   string   `json:"bench"`
	Date    string   `json:"date"` // UTC
	Machine string   `json:"machine"`
	Cores   int      `json:"cores"`
	Memory  int64    `json:"memoryBytes,omitempty"` // of the machine
	Load    string   `json:"load"`                  // Linux's load average over the last minute
	Go      string   `json:"go"`
	Version string   `json:"version"`
	Command string   `json:"command"`
	Tables  []*Table `json:"tables"`
	Aims    []Aim    `json:"aims,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	pictures map[string]string // SVG by file name
}

// Table has figures of one kind, one line per case.
type Table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"` // with units; the first is for the cases
	Lines   []Line   `json:"lines"`
}

// Line has the figures of one case, one per column except the first. A missing figure is nil.
type Line struct {
	Case   string     `json:"case"`
	Values []*float64 `json:"values"`
}

// Aim is a promised figure and the measured one.
type Aim struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"` // at most
	Unit     string  `json:"unit"`
	Met      bool    `json:"met"`
}

// NewReport begins a report, before the measuring: it records how busy the machine was.
func NewReport(bench, version, command string) *Report {
	return &Report{
		Bench: bench, Date: time.Now().UTC().Format("2006-01-02 15:04"), Machine: Machine(),
		Cores:  runtime.NumCPU(),
		Memory: memory(), Load: Load(),
		Go:      runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Version: version, Command: command,
	}
}

func (r *Report) table(title string, columns ...string) *Table {
	t := &Table{Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	return t
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// picture adds a picture, which Save writes to a file of that name beside the report.
func (r *Report) picture(name, svg string) {
	if r.pictures == nil {
		r.pictures = map[string]string{}
	}
	r.pictures[name] = svg
}

// atMost adds an aim that measured is at most limit.
func (r *Report) atMost(what string, measured, limit float64, unit string) {
	r.Aims = append(r.Aims, Aim{What: what, Measured: measured, Limit: limit, Unit: unit,
		Met: measured <= limit})
}

// scale is how much a measure measured of the amount that its aims are for.
type scale struct {
	measured, full int
	things         string
}

// atMostAt adds an aim for the full scale. A smaller measure can only miss it: if it does not, a
// note says that the aim is not judged.
func (r *Report) atMostAt(s scale, what string, measured, limit float64, unit string) {
	if s.measured < s.full && measured <= limit {
		r.note("aim not judged: %s: at most %s %s is for %s %s, not for %s", what, figure(limit),
			unit, figure(float64(s.full)), s.things, figure(float64(s.measured)))
		return
	}
	r.atMost(what, measured, limit, unit)
}

// add adds a line. NaN stands for a missing figure.
func (t *Table) add(name string, values ...float64) {
	line := Line{Case: name}
	for _, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			line.Values = append(line.Values, nil)
			continue
		}
		line.Values = append(line.Values, &value)
	}
	t.Lines = append(t.Lines, line)
}

// Text is the report for people, as Markdown whose tables are readable as text.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# shoal bench %s, %s\n\n%s, %d cores, %d MB, load %s before; %s; shoal "+
		"%s\n\n    %s\n", r.Bench, r.Date,
		r.Machine, r.Cores, r.Memory>>20, r.Load, r.Go, r.Version, r.Command)
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n%s\n\n%s", t.Title, t.text())
	}
	if len(r.Aims) > 0 {
		b.WriteString("\n")
	}
	for _, aim := range r.Aims {
		verdict := "met"
		if !aim.Met {
			verdict = "NOT met"
		}
		fmt.Fprintf(&b, "- aim %s: %s: %s %s, at most %s\n", verdict, aim.What,
			figure(aim.Measured), aim.Unit,
			figure(aim.Limit))
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	return b.String()
}

func (t *Table) text() string {
	cells := [][]string{t.Columns}
	for _, line := range t.Lines {
		row := []string{line.Case}
		for _, value := range line.Values {
			if value == nil {
				row = append(row, "–")
				continue
			}
			row = append(row, figure(*value))
		}
		cells = append(cells, row)
	}
	widths := make([]int, len(t.Columns))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range cells {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("| " + cell + space)
			} else {
				b.WriteString(" | " + space + cell)
			}
		}
		b.WriteString(" |\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			if i == 0 {
				b.WriteString("|" + strings.Repeat("-", width+2))
			} else {
				b.WriteString("|" + strings.Repeat("-", width+1) + ":")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// figure formats a number with meaningful decimals and thousands separators.
func figure(value float64) string {
	size := math.Abs(value)
	switch {
	case value == math.Trunc(value) || size >= 1000:
		return thousands(strconv.FormatFloat(value, 'f', 0, 64))
	case size >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size >= 0.01:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
	return strconv.FormatFloat(value, 'g', 2, 64)
}

func thousands(digits string) string {
	sign, digits := digits[:len(digits)-len(strings.TrimPrefix(digits, "-"))],
		strings.TrimPrefix(digits, "-")
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// Save writes the report to a directory, named after day, processor and measure, and returns the
// path without extension. A later report of the same day replaces an earlier one.
func (r *Report) Save(dir string) (string, error) {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	day, _, _ := strings.Cut(r.Date, " ")
	path := filepath.Join(dir, day+"-"+Slug(r.Machine)+"-"+r.Bench)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save report: %w", err)
	}
	err = errors.Join(os.WriteFile(path+".md", []byte(r.Text()), 0o644),
		os.WriteFile(path+".json", append(encoded, '\n'), 0o644))
	for name, svg := range r.pictures {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644))
	}
	return path, err
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug converts text to a part of a file name.
func Slug(text string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// Machine returns the processor's name from Linux.
func Machine() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // the name stays empty if this fails
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// memory is the machine's memory, in bytes; 0 if unknown.
func memory() int64 {
	info, _ := os.ReadFile("/proc/meminfo") // the size stays unknown if this fails
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kilobytes, err := strconv.ParseInt(
				strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return kilobytes << 10
			}
		}
	}
	return 0
}

// Load is the load average of the last minute. If it is above the number of cores, only ratios are
// reliable.
func Load() string {
	averages, _ := os.ReadFile("/proc/loadavg") // the load stays unknown if this fails
	if one, _, found := strings.Cut(string(averages), " "); found {
		return one
	}
	return "unknown"
}

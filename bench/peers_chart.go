package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// chartFile is the chart of the latest results, beside them.
const chartFile = "pages-per-cpu-second.svg"

// writeChart draws a run, and beside it the same day's run of the other kind, if there is one.
func (r *report) writeChart(dir string) error {
	runs := []*report{r}
	switch other, err := readReport(filepath.Join(dir, r.fileName(!r.Absent)+".json")); {
	case err == nil:
		runs = append(runs, other)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	slices.SortFunc(runs, func(a, b *report) int { return boolOrder(a.Absent, b.Absent) })
	return os.WriteFile(filepath.Join(dir, chartFile), []byte(chart(runs)), 0o644)
}

// boolOrder puts false before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// chartBar is a contender with its medians, one per run; 0 if a run lacks it.
type chartBar struct {
	name   string
	values []float64
}

// chartBars returns all contenders that make rows, fastest first. One without rows is a limit, not
// a contender, and its bar would make all others look alike. The binary before is not a peer.
func chartBars(runs []*report) []chartBar {
	var bars []chartBar
	for _, name := range slices.Concat(runs[0].Order, runs[len(runs)-1].Order) {
		if name == loopBefore || slices.ContainsFunc(bars,
			func(b chartBar) bool { return b.name == name }) {
			continue
		}
		bar := chartBar{name: name}
		rows := false
		for _, r := range runs {
			value := 0.0
			if samples := r.Rounds[name]; len(samples) > 0 {
				value = r.of(name, sample.perCPUSecond).median
				rows = rows || samples[0].Rows != ""
			}
			bar.values = append(bar.values, value)
		}
		if rows {
			bars = append(bars, bar)
		}
	}
	slices.SortStableFunc(bars,
		func(a, b chartBar) int { return int(slices.Max(b.values) - slices.Max(a.values)) })
	return bars
}

// Dimensions of the chart, in pixels.
const (
	chartWidth = 860
	chartLeft  = 210 // where bars begin
	chartRight = 70  // for the longest bar's figure
	chartTop   = 84
	barHeight  = 13
	barGap     = 10 // between contenders
)

// chart draws one horizontal bar per contender and run, on a linear scale.
func chart(runs []*report) string {
	bars := chartBars(runs)
	if len(bars) == 0 {
		return ""
	}
	longest := 0.0
	for _, bar := range bars {
		longest = max(longest, slices.Max(bar.values))
	}
	step := barHeight*len(runs) + barGap
	height := chartTop + step*len(bars) + 10
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
			`font-family="system-ui, sans-serif" font-size="12">`+"\n", chartWidth, height,
		chartWidth,
		height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&b,
		`<text x="12" y="24" font-size="16" font-weight="600">Pages per CPU-second</text>`+"\n")
	fmt.Fprintf(&b,
		`<text x="12" y="42" fill="#555">%s, %d cores, %s; the same page, web and fields; blue: Shoal</text>`+
			"\n", html.EscapeString(runs[0].Machine), runs[0].Cores,
		html.EscapeString(runs[0].Date))
	for i, r := range runs {
		fmt.Fprintf(&b,
			`<rect x="%d" y="54" width="12" height="12" fill="%s"/><text x="%d" y="64">%s</text>`+
				"\n",
			12+i*300, barColour(false, r.Absent), 30+i*300, seriesName(r.Absent))
	}
	for i, bar := range bars {
		y := chartTop + i*step
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-8,
			y+barHeight*len(runs)/2+4, html.EscapeString(bar.name))
		for j, value := range bar.values {
			if value == 0 {
				continue
			}
			width := value / longest * (chartWidth - chartLeft - chartRight)
			top := y + j*barHeight
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
				chartLeft, top, width,
				barHeight-1, barColour(ours(bar.name), runs[j].Absent))
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="11">%s</text>`+"\n",
				chartLeft+width+4, top+barHeight-3,
				thousands(value))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func seriesName(absent bool) string {
	if absent {
		return "a sixth field is absent: all of the page is read"
	}
	return "five fields: reading may stop at the last"
}

func barColour(own, absent bool) string {
	switch {
	case own && absent:
		return "#7fb0e6"
	case own:
		return "#1f6fc4"
	case absent:
		return "#c2c2c2"
	}
	return "#7a7a7a"
}

// thousands formats 12345 as 12,345.
func thousands(value float64) string {
	digits := fmt.Sprintf("%.0f", value)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

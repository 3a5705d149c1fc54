package measure

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Dimensions of the picture, in pixels.
const (
	panelWidth  = 300
	panelHeight = 200
	panelLeft   = 58
	panelTop    = 84
	panelGap    = 84
)

// panel is one curve over the number of runs.
type panel struct {
	name  string
	limit float64 // the promised limit; 0: none
	of    func(historyPoint) float64
}

// historyChart draws heap, snapshot and restart over the number of runs, both axes from 0.
func historyChart(r *Report, store string, points []historyPoint) string {
	panels := []panel{
		{"live heap, MB", historyHeap, func(p historyPoint) float64 { return p.heap }},
		{"snapshot, MB", 0, func(p historyPoint) float64 { return p.snapshot }},
		{"restart to ready, s", historyRestart, func(p historyPoint) float64 { return p.ready }},
	}
	width := panelLeft + len(panels)*(panelWidth+panelGap)
	height := panelTop + panelHeight + 48
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", width,
		height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="12" y="24" font-size="16" font-weight="600">`+
		`What ended runs leave in the state (%s)</text>`+"\n", html.EscapeString(store))
	fmt.Fprintf(&b, `<text x="12" y="42" fill="#555">%s, %d cores, load %s before, %s; dashed: `+
		`the aim</text>`+"\n", html.EscapeString(r.Machine), r.Cores, html.EscapeString(r.Load),
		html.EscapeString(r.Date))
	for i, p := range panels {
		p.draw(&b, panelLeft+i*(panelWidth+panelGap), points)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p panel) draw(b *strings.Builder, left int, points []historyPoint) {
	most, runs := p.limit, 1.0
	for _, point := range points {
		most, runs = max(most, p.of(point)), max(runs, float64(point.runs))
	}
	most = max(most*1.1, math.SmallestNonzeroFloat32)
	x := func(n float64) float64 { return float64(left) + n/runs*panelWidth }
	y := func(v float64) float64 { return panelTop + panelHeight*(1-v/most) }
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", left, panelTop-12,
		html.EscapeString(p.name))
	fmt.Fprintf(b, `<path d="M%d %d V%d H%d" fill="none" stroke="#999"/>`+"\n", left, panelTop,
		panelTop+panelHeight, left+panelWidth)
	if p.limit > 0 {
		fmt.Fprintf(b, `<path d="M%d %.1f H%d" stroke="#b00" stroke-dasharray="4 4"/>`+"\n", left,
			y(p.limit), left+panelWidth)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#b00">%s</text>`+"\n",
			left-6, y(p.limit)+4, figure(p.limit))
	}
	var line []string
	for _, point := range points {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(float64(point.runs)), y(p.of(point))))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="#1f6fc4" stroke-width="2"/>`+"\n",
		strings.Join(line, " "))
	for _, point := range points {
		at, value := float64(point.runs), p.of(point)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="#1f6fc4"/>`, x(at), y(value))
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="11">%s</text>`+"\n", x(at)+4,
			y(value)-6, figure(value))
	}
	for _, share := range []float64{0, 0.5, 1} {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n",
			x(runs*share), panelTop+panelHeight+18, figure(math.Round(runs*share)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">ended runs</text>`+"\n",
		left+panelWidth/2, panelTop+panelHeight+36)
}

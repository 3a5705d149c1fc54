package commands

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/clock"
)

func TestProgressOnATerminalRedrawsOneLine(t *testing.T) {
	var out bytes.Buffer
	now := clock.NewManual(time.Unix(1_700_000_000, 0))
	p := progress{t: &terminal.Terminal{Err: &out, Clock: now, Columns: 120}, links: 2000}
	for pages := int64(0); pages <= 1000; pages += 10 {
		p.show(api.Progress{State: "RUNNING", TotalRequests: pages, ItemsQuantity: pages})
		now.Advance(50 * time.Millisecond) // 200 pages a second; every second message is drawn
	}
	p.show(api.Progress{State: "SUCCESS", TotalRequests: 2000, ItemsQuantity: 1990})
	p.clear()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\r\x1b[K")[1:]
	if len(lines) != 52 {
		t.Errorf("%d lines drawn", len(lines))
	}
	want := "[============            ]   50% of 2,000  1,000 pages  1,000 rows  200 pages/s  " +
		"about 6 s left"
	if got := lines[len(lines)-2]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "[========================]  100% of 2,000  2,000 pages  1,990 rows"
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProgressIsCutToTheTerminal(t *testing.T) {
	var out bytes.Buffer
	p := progress{t: &terminal.Terminal{Err: &out, Clock: clock.NewManual(time.Unix(0, 0)),
		Columns: 20}, links: 2000}
	p.show(api.Progress{State: "RUNNING", TotalRequests: 1_000_000})
	if got := out.String(); got != "\r\x1b[K100% of 2,000  1,0…" {
		t.Errorf("%q", got)
	}
}

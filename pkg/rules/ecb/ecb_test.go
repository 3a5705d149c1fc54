package ecb

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func date(text string) time.Time {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return at.Add(counts)
}

// published is in the bank's own format, with its namespaces and quotes.
const published = `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
	<gesmes:subject>Reference rates</gesmes:subject>
	<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
	<Cube>
		<Cube time='2025-10-13'><Cube currency='USD' rate='1.25'/><Cube currency='IDR' rate='20000.00'/></Cube>
		<Cube time='2025-10-10'><Cube currency='USD' rate='1.1000'/><Cube currency='JPY' rate='176.40'/></Cube>
		<Cube time='2025-10-09'></Cube>
	</Cube>
</gesmes:Envelope>`

func TestRate(t *testing.T) {
	table, err := Parse([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, on, want string }{
		{"EUR", "USD", "2025-10-13", "1.25 2025-10-13"},
		{"EUR", "USD", "2025-10-20", "1.25 2025-10-13"},
		{"EUR", "USD", "2025-10-12", "1.1 2025-10-10"}, // a Sunday uses Friday's rates
		{"EUR", "USD", "2025-10-10", "1.1 2025-10-10"},
		{"EUR", "USD", "2020-01-01", "1.1 2025-10-10"}, // before the table begins
		{"EUR", "JPY", "2025-10-13", "176.4 2025-10-10"},
		{"USD", "EUR", "2025-10-13", "0.8 2025-10-13"},
		{"USD", "JPY", "2025-10-13", "160.3636364 2025-10-10"},
		{"IDR", "USD", "2025-10-13", "0.0000625 2025-10-13"},
		{"EUR", "EUR", "2025-10-13", "1 2025-10-13"},
		{"EUR", "XXX", "2025-10-13", "0  none"},
	} {
		rate, date, ok := table.Rate(c.from, c.to, date(c.on))
		got := fmt.Sprint(rate.String(), " ", date)
		if !ok {
			got += " none"
		}
		if got != c.want {
			t.Errorf("%s to %s on %s: %s, want %s", c.from, c.to, c.on, got, c.want)
		}
	}
	// Before the bank publishes, a day has the previous day's rates.
	morning := date("2025-10-13").Add(-time.Second)
	if _, day, _ := table.Rate("EUR", "USD", morning); day != "2025-10-10" {
		t.Errorf("on the morning of a day it takes the rates of %s", day)
	}
	if !table.Has("USD") || !table.Has("EUR") || table.Has("JPY") || table.Date() != "2025-10-13" {
		t.Errorf("newest day is %s", table.Date())
	}
}

func TestBundled(t *testing.T) {
	table := Bundled()
	for _, currency := range []string{"EUR", "USD", "JPY", "GBP", "CHF", "CNY", "PLN", "SEK", "INR",
		"BRL"} {
		if !table.Has(currency) {
			t.Errorf("no rate of %s", currency)
		}
	}
	if table.Date() != "2026-04-13" || len(table.days) != 1 || len(table.days[0].rates) != 30 {
		t.Errorf("%d currencies of %s", len(table.days[0].rates), table.Date())
	}
}

func TestParseRefuses(t *testing.T) {
	day := func(cubes string) string { return `<Cube time="2025-10-10">` + cubes + `</Cube>` }
	for name, text := range map[string]string{
		"nothing": "", "no XML": "<", "no day": `<Cube currency="USD" rate="1"/>`,
		"an empty day":       day(""),
		"a day that is none": `<Cube time="2025-13-10"/>`,
		"no number":          day(`<Cube currency="USD" rate="x"/>`),
		"zero":               day(`<Cube currency="USD" rate="0"/>`),
		"negative":           day(`<Cube currency="USD" rate="-1"/>`),
		"an exponent":        day(`<Cube currency="USD" rate="1e9"/>`),
		"no code":            day(`<Cube currency="usd" rate="1"/>`),
		"too large":          day(strings.Repeat(" ", maxBytes)),
		"too many days":      strings.Repeat(day(`<Cube currency="USD" rate="1"/>`), maxDays+1),
		"too many digits":    day(`<Cube currency="USD" rate="` + strings.Repeat("1", 21) + `"/>`),
	} {
		if table, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, table)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(published))
	f.Add(bundled)
	f.Fuzz(func(t *testing.T, document []byte) {
		table, err := Parse(document)
		if err != nil {
			return
		}
		for currency := range table.days[0].rates {
			rate, _, ok := table.Rate(currency, "EUR", date("2000-01-01"))
			if !ok || rate.IsNegative() {
				t.Errorf("%s is %s euros, %v", currency, rate, ok)
			}
		}
	})
}

// bank is the server of a Source.
type bank struct {
	requests atomic.Int32
	answer   atomic.Pointer[string] // response; nil: 500
	asked    chan struct{}          // not nil: notified of each request
	hold     chan struct{}          // not nil: responses wait for it
}

func (b *bank) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.requests.Add(1)
	if b.asked != nil {
		b.asked <- struct{}{}
	}
	if b.hold != nil {
		<-b.hold
	}
	if text := b.answer.Load(); text != nil {
		_, _ = io.WriteString(w, *text)
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
}

func (b *bank) publish(day, usd string) {
	text := fmt.Sprintf(`<Cube time="%s"><Cube currency="USD" rate="%s"/></Cube>`, day, usd)
	b.answer.Store(&text)
}

func newSource(t *testing.T, b *bank, now clock.Clock, shared cache.Values) *Source {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	client, err := egress.New(egress.Config{
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Origins: map[string]string{"bank.example": server.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return NewSource(client, Config{URL: "http://bank.example/", Clock: now, Shared: shared})
}

// TestSource: rates are read when needed, once after each time at which new ones become valid. A
// failure is retried an hour later.
func TestSource(t *testing.T) {
	now := clock.NewManual(date("2026-05-01"))
	b := &bank{}
	s := newSource(t, b, now, nil)
	step := func(name string, after time.Duration, want string, requests int32) {
		t.Helper()
		now.Advance(after)
		if got := s.Table(t.Context()).Date(); got != want || b.requests.Load() != requests {
			t.Errorf("%s: rates of %s after %d requests, want those of %s after %d", name, got,
				b.requests.Load(), want, requests)
		}
	}
	step("the bank is away", 0, "2026-04-13", 1)
	b.publish("2026-04-30", "1.1")
	step("a little later", 59*time.Minute, "2026-04-13", 1)
	step("an hour later", time.Minute, "2026-04-30", 2)
	b.publish("2026-05-04", "1.2")
	step("the same day", 22*time.Hour, "2026-04-30", 2)
	step("the next day", time.Hour, "2026-05-04", 3)
	b.publish("2026-05-01", "1.3")
	step("an older table", 24*time.Hour, "2026-05-04", 4)
	b.answer.Store(nil)
	step("away again", 24*time.Hour, "2026-05-04", 5)
}

// TestSourceIsReadOnce: while one caller reads, the others use the current table. A caller that
// gives up says nothing about the bank.
func TestSourceIsReadOnce(t *testing.T) {
	b := &bank{asked: make(chan struct{}, 2), hold: make(chan struct{})}
	b.publish("2026-05-04", "1.2")
	s := newSource(t, b, clock.NewManual(date("2026-05-05")), nil)
	gone, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	callers.Go(func() { s.Table(gone) })
	<-b.asked
	for range 3 {
		if got := s.Table(t.Context()).Date(); got != "2026-04-13" {
			t.Errorf("meanwhile rates are of %s", got)
		}
	}
	cancel()
	callers.Wait()
	close(b.hold)
	if got := s.Table(t.Context()).Date(); got != "2026-05-04" || b.requests.Load() != 2 {
		t.Errorf("rates of %s after %d requests", got, b.requests.Load())
	}
}

func TestSourceIsShared(t *testing.T) {
	now := clock.NewManual(date("2026-05-05"))
	shared := cache.NewLocal(now)
	b := &bank{}
	b.publish("2026-05-04", "1.2")
	var last *Source
	for range 3 {
		last = newSource(t, b, now, shared)
		if got := last.Table(t.Context()).Date(); got != "2026-05-04" || b.requests.Load() != 1 {
			t.Errorf("rates of %s after %d requests", got, b.requests.Load())
		}
		now.Advance(7 * time.Hour)
	}
	// A table that was read last expires like one that was read first.
	b.publish("2026-05-05", "1.3")
	now.Advance(3 * time.Hour)
	if got := last.Table(t.Context()).Date(); got != "2026-05-05" || b.requests.Load() != 2 {
		t.Errorf("a day later: rates of %s after %d requests", got, b.requests.Load())
	}
}

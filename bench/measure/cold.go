package measure

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// Cold measures the whole service on hosts that are new to it, over TLS.
type Cold struct {
	Hosts       int    `help:"Hosts per kind of chain, each with a robots.txt and a page." default:"4000"`
	Chain       string `help:"Kind of certificate chain: p256, rsa or both." enum:"p256,rsa,both" default:"both"`
	Concurrency int    `help:"Most bare connections under way." default:"64"`
	Profile     string `help:"Directory for CPU profiles of the service." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*Cold) Help() string {
	return `Every host is contacted for the first time: connection, TLS, robots.txt, one gzip page of 28 KB. Name lookups cost nothing.
The web has certificate chains of P-256 and of RSA (leaf, intermediate, root). First plain crypto/tls of Go reads both
documents over one connection per host and drops them. Then a 'shoal serve' with its usual politeness completes a list of
the pages. CPU time is that of the client, and then of the service; web and command line do not count.

Example: shoal bench cold --hosts 50000`
}

// Aims for cold hosts.
const (
	coldRatio       = 0.95 // of a bare connection's processor time
	coldMemory      = 250  // MB, at coldHosts
	coldHosts       = 50_000
	coldPerMinute   = 20_000
	coldPerHost     = 1.01 // connections: about one in a hundred may end before its page comes
	coldWarmUp      = 10   // one extra host per this many, first
	coldPagesOfHost = 1
)

// coldCase is a kind of web.
type coldCase struct {
	name, flag string
	chains     []synthweb.Chain
}

var coldCases = [...]coldCase{
	{"P-256", "p256", []synthweb.Chain{synthweb.ChainP256}},
	{"RSA", "rsa", []synthweb.Chain{synthweb.ChainRSA}},
}

// coldWeb is a web of that many hosts with one page each.
func coldWeb(hosts int, chains []synthweb.Chain) synthweb.Config {
	config := page.Web(hosts)
	config.Hosts, config.PagesPerHost = hosts, coldPagesOfHost
	config.TLS, config.Gzip, config.Chains = true, true, chains
	config.Robots = []synthweb.Robots{synthweb.RobotsDisallow}
	return config
}

// chilled is the result of a case.
type chilled struct {
	bare, used  reading
	peak        int64 // bytes
	connections int64
	web         float64
}

// Measure measures all cases.
func (m *Cold) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"hosts": m.Hosts, "concurrency": m.Concurrency}); err != nil {
		return err
	}
	table := report.table(fmt.Sprintf("%d hosts of each kind, each met for the first time:",
		m.Hosts), "chain", "bare connection, CPU a host, µs", "whole loop, CPU a host, µs",
		"whole loop / bare", "connections a host", "hosts a minute", "peak memory, MB",
		"web, cores")
	for _, c := range coldCases {
		if m.Chain != "both" && m.Chain != c.flag {
			continue
		}
		found, err := m.measure(ctx, on, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		n := float64(m.Hosts)
		bare, used := micros(found.bare.cpu)/n, micros(found.used.cpu)/n
		peak := float64(found.peak) / 1e6
		table.add(c.name, bare, used, used/bare, float64(found.connections)/n,
			n/found.used.wall.Minutes(), peak, found.web)
		report.atMost("the whole loop of the bare connection, "+c.name, used/bare, coldRatio,
			"times its CPU")
		report.atMost("connections, "+c.name, float64(found.connections)/n, coldPerHost, "a host")
		report.atMostAt(scale{m.Hosts, coldHosts, "hosts"}, "peak memory, "+c.name, peak,
			coldMemory, "MB")
		report.atMost("time, "+c.name, found.used.wall.Seconds()/n*coldPerMinute, 60,
			fmt.Sprintf("s for %d hosts", coldPerMinute))
	}
	return nil
}

func (m *Cold) measure(ctx context.Context, on *Bench, c coldCase) (found chilled, err error) {
	warmUp := m.Hosts/coldWarmUp + 1
	w, err := on.startWeb(ctx, coldWeb(m.Hosts+warmUp, c.chains))
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	addresses := slices.Collect(w.URLs(m.Hosts + warmUp))
	first, measured := addresses[:warmUp], addresses[warmUp:]
	on.Say("cold: %s: bare connections", c.name)
	if found.bare, err = m.connect(ctx, w, first, measured); err != nil {
		return found, fmt.Errorf("bare connections: %w", err)
	}
	on.Say("cold: %s: whole loop", c.name)
	var env []string
	if m.Profile != "" {
		if err := os.MkdirAll(m.Profile, 0o755); err != nil {
			return found, fmt.Errorf("--profile: %w", err)
		}
		env = append(env, "SHOAL_CPUPROFILE="+filepath.Join(m.Profile, Slug(c.name)+".prof"))
	}
	s, err := on.fresh(ctx, env, []*web{w})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	return found, m.crawl(ctx, s, w, first, measured, &found)
}

// crawl runs a list of the measured addresses, after one of the first addresses.
func (m *Cold) crawl(ctx context.Context, s *service, w *web, first, measured []string,
	found *chilled) error {
	order := api.Order{Who: s.Client, Kind: model.SingleProduct, Fields: page.Fields(false),
		URLs: first}
	if err := s.crawl(ctx, order); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	connections, err := w.connections(ctx)
	if err != nil {
		return err
	}
	var before, after process.Usage
	if before, err = s.Usage(); err != nil {
		return err
	}
	if err := w.markSpan(); err != nil {
		return err
	}
	begun := time.Now()
	order.URLs = measured
	if err := s.deliver(ctx, order); err != nil {
		return err
	}
	found.used.wall = time.Since(begun)
	if after, err = s.Usage(); err != nil {
		return err
	}
	found.used.cpu, found.peak = after.CPU-before.CPU, after.PeakBytes
	if found.web, err = w.share(); err != nil {
		return err
	}
	now, err := w.connections(ctx)
	found.connections = now - connections - 1 // one of them was for this question
	return err
}

// connect opens a connection to the host of each address and reads both documents.
func (m *Cold) connect(ctx context.Context, w *web, first, measured []string) (reading, error) {
	roots, err := w.roots()
	if err != nil {
		return reading{}, err
	}
	visit := func(ctx context.Context, address string) (int, error) {
		return visitBare(ctx, w.place, roots, address)
	}
	if _, err := readAll(ctx, m.Concurrency, first, visit); err != nil {
		return reading{}, err
	}
	return readAll(ctx, m.Concurrency, measured, visit)
}

// visitBare does the minimum: Go's default TLS and two requests over one connection. It reads the
// answers without unpacking them, and drops them.
func visitBare(ctx context.Context, place string, roots *x509.CertPool, address string) (int,
	error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: host}}
	connection, err := dialer.DialContext(ctx, "tcp", place)
	if err != nil {
		return 0, err
	}
	defer func() { _ = connection.Close() }() // everything needed has been read
	if err := connection.SetDeadline(time.Now().Add(exchangeTime)); err != nil {
		return 0, err
	}
	answers := bufio.NewReader(connection)
	total := 0
	for _, target := range []string{"robots.txt", path} {
		if _, err := io.WriteString(connection, "GET /"+target+" HTTP/1.1\r\nHost: "+host+
			"\r\nAccept-Encoding: gzip\r\n\r\n"); err != nil {
			return total, err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return total, err
		}
		n, err := io.Copy(io.Discard, answer.Body)
		if total += int(n); err != nil || answer.StatusCode != http.StatusOK {
			return total, fmt.Errorf("/%s: %s: %w", target, answer.Status, err)
		}
	}
	return total, nil
}

// connections returns how many connections the web has accepted, including that of this question.
func (w *web) connections(ctx context.Context) (int64, error) {
	roots, err := w.roots()
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: w.Hosts()[0]}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.place+"/stats",
		nil)
	if err != nil {
		return 0, fmt.Errorf("bench: web: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("bench: web: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	var stats synthweb.Stats
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("bench: web: stats: %w", err)
	}
	return stats.Connections, nil
}

// roots are the CAs that a client of a web with TLS trusts.
func (w *web) roots() (*x509.CertPool, error) {
	pem, err := os.ReadFile(w.authority)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return roots, nil
}

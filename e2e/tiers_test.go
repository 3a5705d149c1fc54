package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/browser"
)

// exitAddress is the source address of the test's proxies: sites recognize proxied requests by it.
var exitAddress = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}

// newTieredSite serves five hosts. One is open to all, one has rows made by scripts, one only
// admits proxies, one is both, and one has pages that break off.
func newTieredSite(t *testing.T) string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(r.Host, ".")
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/robots.txt":
			w.WriteHeader(http.StatusNotFound)
		case (kind == "walled" || kind == "both") && from != exitAddress.IP.String():
			w.WriteHeader(http.StatusForbidden)
		case kind == "cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "<h1>half</h1>")
		case kind == "scripted" || kind == "both":
			_, _ = io.WriteString(w,
				`<div id=app></div><script>document.getElementById("app").innerHTML = "<h1>" + location.pathname + "</h1>"</script>`)
		default:
			_, _ = fmt.Fprintf(w, "<h1>%s</h1>", r.URL.Path)
		}
	}))
	t.Cleanup(site.Close)
	return site.Listener.Addr().String()
}

// carry joins two connections until one of them ends.
func carry(a, b net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() { _, _ = io.Copy(a, b); _ = a.Close() })
	ways.Go(func() { _, _ = io.Copy(b, a); _ = b.Close() })
	ways.Wait()
}

// newHTTPProxy is a proxy that opens tunnels with CONNECT.
func newHTTPProxy(t *testing.T) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dialer := net.Dialer{LocalAddr: exitAddress}
		to, err := dialer.DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = to.Close()
			return
		}
		carry(from, to)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// newSOCKSProxy is a SOCKS 5 proxy to IPv4 addresses, with a user and a password.
func newSOCKSProxy(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				serveSOCKS(conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return "socks5://user:password@" + listener.Addr().String()
}

func serveSOCKS(conn net.Conn) {
	for _, step := range []struct{ want, say string }{{"\x05\x01\x02", "\x05\x02"},
		{"\x01\x04user\x08password", "\x01\x00"}} {
		got := make([]byte, len(step.want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != step.want {
			return
		}
		_, _ = io.WriteString(conn, step.say)
	}
	var ask [10]byte // version, CONNECT, 0, IPv4, address, port
	if _, err := io.ReadFull(conn, ask[:]); err != nil || string(ask[:4]) != "\x05\x01\x00\x01" {
		return
	}
	place := netip.AddrPortFrom(netip.AddrFrom4([4]byte(ask[4:8])),
		uint16(ask[8])<<8|uint16(ask[9]))
	dialer := net.Dialer{LocalAddr: exitAddress}
	to, err := dialer.Dial("tcp", place.String())
	if err != nil {
		_, _ = io.WriteString(conn, "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
		return
	}
	_, _ = io.WriteString(conn, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
	carry(conn, to)
}

// TestTiers: each page comes by the cheapest tier that gets it and costs that tier's price, even if
// the process dies in the middle. Without a browser, a launch that needs one is refused.
func TestTiers(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	proxies := filepath.Join(t.TempDir(), "proxies")
	if err := os.WriteFile(proxies, []byte("# exits\n"+newHTTPProxy(t)+"\n"+newSOCKSProxy(t)+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	args := append(suite.Fast(), "--no-rate-limits", "--egress-allow", "127.0.0.0/8",
		"--egress-origin", "*.example="+newTieredSite(t),
		"--proxies", proxies)
	product := &single{data: t.TempDir(), args: append(args, "--chromium", path)}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	if nodes, err := product.Command(t.Context(), "cluster", "nodes"); err != nil ||
		!strings.Contains(nodes, "plain,render,super,render+super") {
		t.Errorf("nodes are %v\n%s", err, nodes)
	}
	want := map[string]string{"plain": "tier:plain", "scripted": "tier:render",
		"walled": "tier:super", "both": "tier:render+super"}
	var urls []string
	for n := range 5 {
		for host := range want {
			urls = append(urls, fmt.Sprintf("http://%s.example/%d", host, n))
		}
	}
	order := suite.Order{Order: api.Order{Who: s.Client, URLs: urls, Kind: model.SingleProduct,
		Fields: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}}
	run := order.Launch(t)
	for _, pages := range []int64{4, 12} {
		suite.Begun(t, s.Client, run, pages)
		product.p.Kill()
		s.Restart()
	}
	job, _, err := s.Finished(suite.Within(t, suite.Patience), run)
	if err != nil || job.State != string(model.Completed) {
		t.Fatalf("job is %+v, %v", job, err)
	}
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	if rows := suite.Must(s.Rows(t.Context(), run.JobID))(t); len(rows) != len(urls) {
		t.Errorf("%d rows of %d pages", len(rows), len(urls))
	}
	// A sample of a page that is never complete ends with an error.
	group := suite.Must(s.PutGroup(t.Context(), "samples"))(t)
	id := suite.Must(s.PutScraper(t.Context(),
		suite.Scraper{GroupRef: group,
			Scraper: model.Scraper{Name: "cut", Type: model.SingleProduct,
				ItemsConfig:  order.Fields,
				SourceConfig: model.SourceConfig{URL: "http://cut.example/"}}}))(t)
	err = s.Call(t.Context(), "GET", "/api/scraper/"+id+"/get-sample-data", nil, nil, nil)
	if suite.CodeOf(err) != "source_unreachable" ||
		!strings.Contains(err.Error(), "protocol_error") {
		t.Errorf("a sample of a page that breaks off: %v", err)
	}
	product.Down(t)
	records := suite.Must(product.Records(t.Context(), run.JobID))(t)
	for _, r := range records {
		host, _, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), ".")
		if r.PriceRow != want[host] || r.Quantity != 1 {
			t.Errorf("%s cost %d x %q", r.URL, r.Quantity, r.PriceRow)
		}
	}
	if len(records) != len(urls) {
		t.Errorf("%d records of %d pages", len(records), len(urls))
	}

	product.args = args // no browser
	product.Up(t)
	s.Client = product.Self()
	group = suite.Must(s.PutGroup(t.Context(), "more"))(t)
	id = suite.Must(s.PutScraper(t.Context(),
		suite.Scraper{GroupRef: group,
			Scraper: model.Scraper{Name: "more", Type: model.MultipleProducts,
				ItemsConfig: order.Fields,
				SourceConfig: model.SourceConfig{URL: "http://plain.example/",
					Pagination: &model.Pagination{Type: model.LoadMore, Selector: "button"}}}}))(t)
	if _, err := s.RunScraper(t.Context(), id); suite.CodeOf(err) != "tier_unavailable" {
		t.Errorf("a scraper that needs a browser: %v", err)
	}
	product.Down(t)
}

package chromium

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/turns"
	"shoal.dev/shoal/testkit/browser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBrowser opens a browser for which handler serves all hosts under .example.
func newBrowser(t *testing.T, config Config, handler http.HandlerFunc) *Browser {
	t.Helper()
	config.Path = browser.Path(t) // first: it may skip the test
	return openBrowser(t, config, httptest.NewServer(handler))
}

// newSecureBrowser is newBrowser with HTTP/2 hosts whose certificate the browser accepts.
func newSecureBrowser(t *testing.T, config Config, handler http.HandlerFunc) *Browser {
	t.Helper()
	config.Path = writeProgram(t, "exec "+browser.Path(t)+` --ignore-certificate-errors "$@"`)
	site := httptest.NewUnstartedServer(handler)
	site.EnableHTTP2 = true
	site.StartTLS()
	return openBrowser(t, config, site)
}

// writeProgram makes an executable from a shell command.
func writeProgram(t *testing.T, command string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+command+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// openBrowser is newBrowser with a running server.
func openBrowser(t *testing.T, config Config, site *httptest.Server) *Browser {
	t.Helper()
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	client, err := egress.New(egress.Config{
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins: map[string]string{"*.example": site.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	config.Client = client
	b, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func load(t *testing.T, b *Browser, ask Ask) (*Page, error) {
	t.Helper()
	if ask.Deadline.IsZero() {
		ask.Deadline = time.Now().Add(time.Minute)
	}
	ask.MaxHops = 3
	return b.Load(t.Context(), ask)
}

func TestPages(t *testing.T) {
	b := newBrowser(t, Config{Body: 1 << 20, Recycle: 4},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			switch r.URL.Path {
			case "/script":
				_, _ = io.WriteString(w, `<body><script>fetch("/data").then(r => r.text()).then(t => {
				document.body.innerHTML = "<h1>" + t + "</h1>"})</script>`)
			case "/data":
				_, _ = io.WriteString(w, "grüße")
			case "/moved":
				http.Redirect(w, r, "http://b.example/script", http.StatusFound)
			case "/gone":
				w.Header().Set("Retry-After", "9")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "<h1>busy</h1>")
			case "/away":
				_, _ = io.WriteString(w,
					`<script>location.href = "http://b.example/script"</script>`)
			case "/lost":
				_, _ = io.WriteString(w, `<script>location.href = "http://10.0.0.1/"</script>`)
			case "/loop":
				http.Redirect(w, r, "/loop?"+r.URL.RawQuery+"x", http.StatusFound)
			case "/private":
				http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			case "/json":
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"a":"ü"}`)
			case "/large":
				_, _ = io.WriteString(w, "<p>"+strings.Repeat("x", 2<<20))
			case "/file":
				w.Header().Set("Content-Type", "application/octet-stream")
				_, _ = io.WriteString(w, "x")
			case "/dialog":
				_, _ = io.WriteString(w,
					`<script>alert("wait"); document.write("<h1>after</h1>")</script>`)
			}
		})
	for _, test := range []struct {
		path  string
		holds string
		code  fault.Code
		check func(*Page) bool
	}{
		{"/script", "<h1>grüße</h1>", "",
			func(p *Page) bool { return p.Status == 200 && p.Received > 0 && p.Hops == 0 }},
		{"/moved", "<h1>grüße</h1>", "",
			func(p *Page) bool { return p.Hops == 1 && p.Final == "http://b.example/script" }},
		{"/away", "<h1>grüße</h1>", "",
			func(p *Page) bool { return p.Hops == 1 && p.Final == "http://b.example/script" }},
		{"/gone", "<h1>busy</h1>", "",
			func(p *Page) bool { return p.Status == 503 && p.Header["retry-after"] == "9" }},
		{"/json", `{"a":"ü"}`, "",
			func(p *Page) bool { return strings.HasPrefix(p.ContentType, "application/json") }},
		{"/dialog", "<h1>after</h1>", "", nil},
		{"/loop", "", fault.PageRedirects, nil},
		{"/private", "", fault.PageAddressForbidden, nil},
		{"/lost", "", fault.PageAddressForbidden, nil},
		{"/large", "", fault.PageTooLarge, nil},
		{"/file", "", fault.PageNotHTML, nil},
	} {
		t.Run(test.path, func(t *testing.T) {
			page, err := load(t, b, Ask{URL: "http://a.example" + test.path})
			if fault.CodeOf(err) != test.code && !(err == nil && test.code == "") {
				t.Fatalf("got %v, want %q", err, test.code)
			}
			if err == nil && (!strings.Contains(string(page.Body), test.holds) ||
				test.check != nil && !test.check(page)) {
				t.Errorf("got %+v, body %q", page, page.Body)
			}
		})
	}
}

// TestCutShort: a document that breaks off is not a page, and the browser notices at once.
func TestCutShort(t *testing.T) {
	const head, page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "<h1>half of the page</h1>"
	answers := map[string]string{
		"/length": head + "Content-Length: 5000\r\n\r\n" + page,
		"/chunks": head + "Transfer-Encoding: chunked\r\n\r\n18\r\n" + page + "\r\n",
		"/chunk":  head + "Transfer-Encoding: chunked\r\n\r\nff\r\n" + page,
		"/reset":  head + "\r\n" + page + "<script async src=/read></script>",
		"/json": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
			"5000\r\n\r\n[",
		"/coding":  head + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain",
		"/nothing": "",
		"/away": head + "Content-Length: 5000\r\n\r\n<script>location.href = '/whole'</script>" +
			page,
		"/closed": head + "\r\n" + page, // its end is that of the connection
	}
	read := make(chan struct{}, 1)
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		answer, cut := answers[r.URL.Path]
		if !cut {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>the whole page</h1>")
			if r.URL.Path == "/read" {
				read <- struct{}{}
			}
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, answer)
		switch r.URL.Path {
		case "/reset":
			<-read // a reset may overtake sent data
			_ = conn.(*net.TCPConn).SetLinger(0)
		case "/away":
			_, _ = conn.Read(make([]byte, 1)) // the page moves elsewhere meanwhile
		}
	})
	for path, want := range map[string]fault.Code{"/length": fault.PageProtocol,
		"/chunks": fault.PageProtocol, "/chunk": fault.PageProtocol,
		"/reset": fault.PageProtocol, "/json": fault.PageProtocol,
		"/coding": fault.PageDecompression, "/nothing": fault.PageConnect,
		"/away": "", "/closed": ""} {
		t.Run(path, func(t *testing.T) {
			got, err := load(t, b, Ask{URL: "http://a.example" + path})
			if fault.CodeOf(err) != want && !(err == nil && want == "") {
				t.Errorf("got %v, want %q", err, want)
			}
			if err == nil && !strings.Contains(string(got.Body), "page</h1>") {
				t.Errorf("got %q", got.Body)
			}
		})
	}
}

// TestTheCallersTime: a page that never finishes loading is read before its time is over, also when
// the caller's deadline is earlier.
func TestTheCallersTime(t *testing.T) {
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>there</h1><script async src=/hang></script>")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	page, err := b.Load(ctx, Ask{URL: "http://a.example/", Deadline: time.Now().Add(time.Hour)})
	if err != nil || !strings.Contains(string(page.Body), "there") {
		t.Errorf("got %q, %v", page.Body, err)
	}
}

func TestHops(t *testing.T) {
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "a.example" && r.URL.Path != "/favicon.ico" {
			t.Errorf("%s was asked for %s", r.Host, r.URL)
		}
		http.Redirect(w, r, "http://b.example/x#y", http.StatusFound)
	})
	own := errors.New("own")
	var hops []string
	_, err := load(t, b, Ask{URL: "http://a.example/",
		BeforeHop: func(_ context.Context, url string) error {
			hops = append(hops, url)
			return own
		}})
	if !errors.Is(err, own) || len(hops) != 1 || hops[0] != "http://b.example/x" {
		t.Errorf("got %v after %v", err, hops)
	}
}

// A panic in the code that reads the browser's messages ends only its own page.
func TestPanicBesideTheLoad(t *testing.T) {
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
		}
	})
	ask := Ask{URL: "http://shop.example/from",
		BeforeHop: func(context.Context, string) error { panic("a reader's") }}
	if _, err := load(t, b, ask); fault.CodeOf(err) != fault.PageUnparsable {
		t.Errorf("the page: %v", err)
	}
	if _, err := load(t, b, Ask{URL: "http://shop.example/to"}); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestProcessOfTheBrowser: if the process ends, its pages fail, and the next has a new process.
func TestProcessOfTheBrowser(t *testing.T) {
	asked := make(chan struct{}, 1)
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			asked <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "<p>fine")
	})
	ended := make(chan error)
	go func() {
		_, err := load(t, b, Ask{URL: "http://a.example/hang"})
		ended <- err
	}()
	<-asked
	b.mu.Lock()
	p := b.current
	b.mu.Unlock()
	<-p.ready
	killProcess(chromedp.FromContext(p.ctx).Browser.Process().Pid)
	if err := <-ended; fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := load(t, b, Ask{URL: "http://a.example/"}); err != nil {
		t.Errorf("the next page: %v", err)
	}
}

// TestBusy: a browser takes as many pages as allowed, and refuses the next.
func TestBusy(t *testing.T) {
	asked := make(chan struct{}, 1)
	b := newBrowser(t, Config{Pages: 1}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := b.Load(ctx, Ask{URL: "http://a.example/", Deadline: time.Now().Add(time.Minute)})
		ended <- err
	}()
	<-asked
	if _, err := load(t, b, Ask{URL: "http://a.example/"}); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNobodyHasAllPlaces: endless pages of one customer leave a place for another's.
func TestNobodyHasAllPlaces(t *testing.T) {
	const places = 3
	asked := make(chan struct{}, places)
	b := newBrowser(t, Config{Pages: places}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>fine</h1>")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	hang := func() {
		_, err := b.Load(ctx, Ask{URL: "http://a.example/hang", Customer: "often",
			Deadline: time.Now().Add(time.Minute)})
		ended <- err
	}
	for range places - 1 {
		go hang()
		<-asked
	}
	go hang()
	if err := <-ended; !errors.Is(err, ErrBusy) {
		t.Errorf("the last place is given to who has the others: %v", err)
	}
	if _, err := load(t, b, Ask{URL: "http://a.example/", Customer: "seldom"}); err != nil {
		t.Errorf("a page of somebody else: %v", err)
	}
	cancel()
	for range places - 1 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	if _, err := load(t, b, Ask{URL: "http://a.example/", Customer: "often"}); err != nil {
		t.Errorf("when all have left: %v", err)
	}
}

// TestDownloads: a page leaves no file behind, and a killed browser leaves no directory.
func TestDownloads(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	temporary, err := os.MkdirTemp("", "t") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temporary)
	t.Setenv("TMPDIR", temporary)
	t.Chdir(home)
	var asked atomic.Int64
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/file") {
			asked.Add(1)
			w.Header().Set("Content-Disposition", "attachment; filename=kept.bin")
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<p>x<iframe src=/file-in-a-frame></iframe><script>
			const save = (href) => { const a = document.createElement("a"); a.href = href; a.download = "kept.bin"; document.body.append(a); a.click() };
			save(URL.createObjectURL(new Blob(["x".repeat(1 << 20)]))); save("/file"); save("data:application/octet-stream,xxx")</script>`)
	})
	if _, err := load(t, b, Ask{URL: "http://a.example/"}); err != nil {
		t.Logf("the page: %v", err) // a link to a file navigates away
	}
	if asked.Load() == 0 {
		t.Error("the page asked for no file")
	}
	b.Close()
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left among temporary files: %v, %v", left, err)
	}
	err = filepath.WalkDir(home, func(path string, entry os.DirEntry, err error) error {
		place := strings.ToLower(strings.TrimPrefix(path, home))
		if err == nil && !entry.IsDir() &&
			(strings.Contains(place, "kept") || strings.Contains(place, "download")) {
			t.Errorf("a file is left: %s", place)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOpenWithoutABrowser: Open finds out that a program is not a browser.
func TestOpenWithoutABrowser(t *testing.T) {
	client, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	open := func(ctx context.Context, path string) error {
		b, err := Open(ctx, Config{Path: path, Client: client})
		if err == nil {
			b.Close()
		}
		return err
	}
	for name, path := range map[string]string{
		"that is not there": "/nowhere/chromium", "that is a directory": t.TempDir(),
		"that ends at once":    writeProgram(t, "exit 0"),
		"that fails":           writeProgram(t, "echo no usable sandbox >&2; exit 1"),
		"without a connection": writeProgram(t, "echo DevTools listening on ws://127.0.0.1:1/x"),
	} {
		if err := open(t.Context(), path); err == nil {
			t.Errorf("a browser %s is opened", name)
		} else if name == "that fails" && !strings.Contains(err.Error(), "sandbox") {
			t.Errorf("a browser %s: the error does not say why: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(ctx, writeProgram(t, "exec sleep 1000")); !errors.Is(err, context.Canceled) {
		t.Errorf("a browser that hangs, and is not waited for: %v", err)
	}
}

// TestAStartThatNobodyAwaits: a caller leaves while a process starts, and the start fails. The next
// page gets another process.
func TestAStartThatNobodyAwaits(t *testing.T) {
	config := Config{Path: writeProgram(t, "exit 1")}
	config.setDefaults()
	b := &Browser{config: config, places: turns.NewLine(config.Pages, ComeAgain)}
	b.ctx, b.cancel = context.WithCancel(t.Context())
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := Ask{URL: "http://a.example/", Deadline: time.Now().Add(time.Minute)}
	if _, err := b.Load(ctx, ask); !errors.Is(err, context.Canceled) {
		t.Errorf("a page that is not waited for: %v", err)
	}
	first := b.current
	<-first.ready
	if _, err := b.Load(t.Context(), ask); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("the next page: %v", err)
	}
	if b.current == first {
		t.Error("the next page has the process that did not start")
	}
}

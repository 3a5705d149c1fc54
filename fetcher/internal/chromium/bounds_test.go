package chromium

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

func TestLoadingMore(t *testing.T) {
	const script = `<body><div id=list></div>%s<script>
		let n = 0; const list = document.getElementById("list");
		function more() { if (n < 4) fetch("/items?" + n++).then(r => r.text()).then(t => {
			list.insertAdjacentHTML("beforeend", t); if (n == 4 && window.b) b.remove() }) }
		more()</script>`
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/click":
			_, _ = fmt.Fprintf(w, script, `<button id=b onclick="more()">more</button>`)
		case "/scroll":
			_, _ = fmt.Fprintf(w, script,
				`<script>addEventListener("scroll", () => more())</script>`)
		case "/items":
			_, _ = fmt.Fprintf(w, `<p style="height: 2000px">item %s</p>`, r.URL.RawQuery)
		}
	})
	for _, test := range []struct {
		path, click string
		max         int
		want        int
	}{{"/click", "#b", 50, 4}, {"/click", "#b", 2, 2}, {"/click", "#missing", 50, 1},
		{"/click", "b[", 50, 1}, {"/click", ".😀, #b", 2, 2}, {"/scroll", "", 50, 4},
		{"/scroll", "", 2, 2}} {
		page, err := load(t, b,
			Ask{URL: "http://a.example" + test.path, More: true, Click: test.click, Max: test.max})
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		if items := strings.Count(string(page.Body), "<p style"); items != test.want ||
			page.Loads != test.want {
			t.Errorf("%s, at most %d: %d items after %d loads", test.path, test.max, items,
				page.Loads)
		}
	}
}

// TestExcess: a page that uses too much ends, and the next one loads.
func TestExcess(t *testing.T) {
	var requests atomic.Int64
	b := newBrowser(t, Config{Bytes: 1 << 20, Requests: 30},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/hang":
				<-r.Context().Done()
			case "/spin":
				_, _ = io.WriteString(w, `<p>x<script>for (;;) {}</script>`)
			case "/bytes":
				_, _ = io.WriteString(w, "<p>")
				for r.Context().Err() == nil {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			case "/requests":
				_, _ = io.WriteString(w,
					`<script>for (let i = 0; i < 500; i++) fetch("/one?" + i).catch(() => 0)</script><h1>x</h1>`)
			case "/one":
				requests.Add(1)
			default:
				_, _ = io.WriteString(w, "<h1>fine</h1>")
			}
		})
	for path, want := range map[string]fault.Code{"/hang": fault.PageTimeout,
		"/spin": fault.PageTimeout, "/bytes": fault.PageTooLarge} {
		ask := Ask{URL: "http://a.example" + path}
		if want == fault.PageTimeout {
			ask.Deadline = time.Now().Add(15 * time.Second)
		}
		_, err := load(t, b, ask)
		if code := fault.CodeOf(err); code != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if page, err := load(t, b, Ask{URL: "http://a.example/"}); err != nil ||
			!strings.Contains(string(page.Body), "fine") {
			t.Errorf("after %s: %v", path, err)
		}
	}
	if _, err := load(t, b, Ask{URL: "http://a.example/requests"}); err != nil {
		t.Errorf("a page of many requests: %v", err)
	}
	if n := requests.Load(); n == 0 || n > 30 {
		t.Errorf("%d requests of one page", n)
	}
}

// TestExcessWithinAConnection: requests within a connection that nobody inspects are counted, too,
// and so are the bytes that a page sends.
func TestExcessWithinAConnection(t *testing.T) {
	const endless = `<h1>first</h1><script>(async () => {
		try { for (;;) await fetch("/one", {cache: "no-store"}) } catch { %s } })()</script>`
	b := newSecureBrowser(t, Config{Bytes: 1 << 20, Requests: 30}, func(w http.ResponseWriter,
		r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/requests":
			_, _ = fmt.Fprintf(w, endless, `document.body.innerHTML = "<h1>refused</h1>"`)
		case "/frame":
			_, _ = fmt.Fprintf(w, endless,
				`document.body.innerHTML = "<h1>refused</h1><iframe src=/framed></iframe>"`)
		case "/away":
			_, _ = fmt.Fprintf(w, endless, `location.href = "/"`)
		case "/uploads":
			_, _ = io.WriteString(w, `<script>(async () => { for (;;)
				await fetch("/one", {method: "POST", body: new Uint8Array(64 << 10)}) })()</script>`)
		case "/framed":
			t.Error("a frame was asked for")
		case "/one":
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			_, _ = io.WriteString(w, "<h1>fine</h1>")
		}
	})
	const refused = "<body><h1>refused</h1>"
	for path, want := range map[string]struct {
		holds string
		code  fault.Code
	}{"/requests": {refused, ""}, "/frame": {refused, ""}, "/away": {"", fault.PageTooLarge},
		"/uploads": {"", fault.PageTooLarge}, "/": {"fine", ""}} {
		page, err := load(t, b, Ask{URL: "https://a.example" + path})
		if (err != nil || want.code != "") && fault.CodeOf(err) != want.code ||
			!strings.Contains(string(page.Body), want.holds) {
			t.Errorf("%s: %q, %v", path, page.Body, err)
		}
	}
}

// TestMemory: a page that uses too much memory ends, and its neighbours go on.
func TestMemory(t *testing.T) {
	grown, asked := make(chan struct{}), make(chan struct{}, 1)
	b := newBrowser(t, Config{Memory: 768 << 20}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, `<p>x<script>const all = []; setInterval(() => {
				if (all.length < 64) all.push(new Uint8Array(32 << 20).fill(1)) }, 10)</script>
				<script src="/never"></script>`)
		case "/never":
			<-r.Context().Done()
		case "/small":
			_, _ = io.WriteString(w, `<p>small<script src="/wait"></script>`)
		case "/wait":
			asked <- struct{}{}
			select {
			case <-grown:
			case <-r.Context().Done():
			}
		}
	})
	small := make(chan error)
	go func() {
		page, err := load(t, b, Ask{URL: "http://b.example/small"})
		if err == nil && !strings.Contains(string(page.Body), "small") {
			err = fmt.Errorf("body %q", page.Body)
		}
		small <- err
	}()
	<-asked
	start := time.Now()
	if _, err := load(t, b, Ask{URL: "http://a.example/large"}); fault.CodeOf(
		err) != fault.PageTooLarge {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	close(grown)
	if err := <-small; err != nil {
		t.Errorf("its neighbour: %v", err)
	}
}

// TestPopups: a page opens no other page, by script or by a link.
func TestPopups(t *testing.T) {
	var opened atomic.Int64
	b := newBrowser(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, `<a id=a target=_blank href="/popup">x</a><script>
				for (let i = 0; i < 20; i++) window.open("/popup");
				a.click(); fetch("/asked").then(r => r.text()).then(t => a.append(t))</script>`)
		case "/asked":
			_, _ = io.WriteString(w, "asked")
		case "/popup":
			opened.Add(1)
		}
	})
	page, err := load(t, b, Ask{URL: "http://a.example/", More: true, Click: "#a", Max: 3})
	if err != nil || !strings.Contains(string(page.Body), "asked") {
		t.Errorf("%v", err)
	}
	if n := opened.Load(); n > 0 {
		t.Errorf("the page has opened %d others", n)
	}
}

package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// chain is a shop's list of three pages, each with a link to the next one.
type chain struct {
	at string

	mu   sync.Mutex // guards read
	read map[string]int
}

func newChain(t *testing.T) *chain {
	t.Helper()
	c := &chain{read: map[string]int{}}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var number int
		_, err := fmt.Sscanf(r.URL.Path, "/list/%d", &number)
		if err != nil || number < 1 || number > 3 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		c.mu.Lock()
		c.read[r.URL.Path]++
		c.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<title>Lamps</title><ul class=things>")
		for i := range 24 {
			_, _ = fmt.Fprintf(w, `<li class=thing><a class=name href="/lamp/%[1]d-%[2]d">Lamp `+
				`%[2]d of list %[1]d</a><span class=price>%[3]d.50 €</span></li>`, number, i, 10+i)
		}
		_, _ = io.WriteString(w, "</ul>")
		if number < 3 {
			_, _ = fmt.Fprintf(w, `<nav><a rel=next href="/list/%d">Next</a></nav>`, number+1)
		}
	}))
	t.Cleanup(site.Close)
	c.at = site.Listener.Addr().String()
	return c
}

// counted returns how often each page was read.
func (c *chain) counted() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.read)
}

// TestPortalReadsAPastedListOnce pastes the pages of a list that link to each other. Each is read
// once. Whoever wants the pages that follow sees what they cost before the launch.
func TestPortalReadsAPastedListOnce(t *testing.T) {
	t.Parallel()
	shop := newChain(t)
	v := newVisit(t, false, "--egress-origin", "chain.test="+shop.at)
	const box = `document.querySelector("#follow")`
	const page = "http://chain.test/list/%d"
	follows := func(on bool) {
		t.Helper()
		v.sees(fmt.Sprintf(`%[1]s?.checked === %[2]v && %[1]s.ariaDisabled === "false" &&
			document.querySelector(".facts strong").innerText.includes("–") === %[2]v`, box, on))
	}
	one := fmt.Sprintf(page, 1)
	v.enters("addresses", one)
	v.presses("Show rows")
	v.clicks(".card button")
	v.says("The list continues behind a link to the next page.")
	follows(true)

	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", one+"\n"+fmt.Sprintf(page, 2)+"\n"+fmt.Sprintf(page, 3))
	v.presses("Show rows")
	v.clicks(".card button")
	follows(false)
	v.clicks("#follow")
	follows(true)
	v.clicks("#follow")
	follows(false)
	before := shop.counted()
	v.clicks("form button")
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	for path, n := range shop.counted() {
		if n -= before[path]; n != 1 {
			t.Errorf("%s was read %d times by the run, want once", path, n)
		}
	}
	v.ends()
}

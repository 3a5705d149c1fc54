package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

var (
	portalShots = flag.String("portal-shots", "", "keep screenshots of the portal in this directory")
	axeScript   = flag.String("axe", "", "judge the portal's pages by this file, axe-core's axe.min.js")
)

// hostileTitle is a possible page title. None of it may take effect where it is shown.
const hostileTitle = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>" +
	"\u202eright to left\u2066\u0007\u200b"

// newShop is a shop with a list of 24 things, one of them hostile, and further lists. Lists from 40
// on are gone.
func newShop(t *testing.T) string {
	t.Helper()
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var number int
		_, err := fmt.Sscanf(r.URL.Path, "/list/%d", &number)
		if err != nil || number >= 40 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<title>Lamps</title><ul class=things>")
		for i := range 24 {
			title := fmt.Sprintf("Lamp %d of list %d", i, number)
			if i == 1 {
				title = escape.Replace(hostileTitle) + strings.Repeat("x", 3000)
			}
			_, _ = fmt.Fprintf(w, `<li class=thing><a class=name href="/lamp/%d-%d">%s</a>`+
				`<span class=price>%d.50 €</span></li>`, number, i, title, 10+i)
		}
		_, _ = io.WriteString(w, "</ul>")
	}))
	t.Cleanup(site.Close)
	return site.Listener.Addr().String()
}

// person is a person at a browser.
type person struct {
	t      *testing.T
	ctx    context.Context
	server string

	mu   sync.Mutex // guards said
	said []string   // that the browser wrote to its console
}

func newPerson(t *testing.T, path, server string,
	options ...chromedp.ExecAllocatorOption) *person {
	t.Helper()
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WindowSize(1280, 900))
	flags = append(flags, options...)
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	p := &person{t: t, ctx: ctx, server: server}
	p.do(chromedp.Navigate("about:blank"))
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return // the browser ends
			}
			if strings.HasPrefix(message.String(), "info: Clear-Site-Data header") {
				continue // a sign-out asks for it
			}
			p.mu.Lock()
			p.said = append(p.said, message.String())
			p.mu.Unlock()
		}
	}()
	return p
}

// signsIn makes an account of the service's own customer, and signs in with it.
func (p *person) signsIn(s *suite.Service) {
	p.t.Helper()
	account := map[string]string{"email": "new@example.com", "password": "a long password of mine",
		"customerRef": suite.Must(s.Whoami(p.t.Context()))(p.t)}
	if err := s.Admin().Call(p.t.Context(), "POST", "/api/admin/accounts", nil, account,
		nil); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.Navigate(s.Server + "/"))
	p.sees(`location.pathname === "/sign-in"`)
	p.do(chromedp.SendKeys(chromedp.CSS("#email"), account["email"]),
		chromedp.SendKeys(chromedp.CSS("#password"), account["password"]))
	p.clicks("form button")
	p.sees(`location.pathname === "/portal" && document.querySelector(".balance strong")`)
}

func (p *person) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// asks evaluates an expression in the page, and waits for a promise it gives.
func asks[T any](p *person, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// sees waits until an expression is true in the page.
func (p *person) sees(expression string) {
	p.t.Helper()
	p.seesAfter(expression, "0")
}

// seesAfter waits until an expression is true in the page. Its timeout restarts whenever a number
// in the page changes: progress is not stuck.
func (p *person) seesAfter(expression, number string) {
	p.t.Helper()
	last := 0
	for deadline := time.Now().Add(suite.Patience); ; {
		// a page being left does not answer
		value, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && value {
			return
		}
		n, numberErr := chromedp.Run(p.ctx, chromedp.Evaluate[int](number))
		if numberErr == nil && n != last {
			last, deadline = n, time.Now().Add(suite.Patience)
		}
		if time.Now().After(deadline) {
			p.shoot("failed")
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.t.Fatalf("never seen: %s, %v. The page:\n%s", expression, err, text)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// clicks waits for an element and clicks it.
func (p *person) clicks(selector string) {
	p.t.Helper()
	quoted, _ := json.Marshal(selector) // texts always can be
	p.sees(fmt.Sprintf("document.querySelector(%s)?.matches("+
		"'button:enabled:not([aria-disabled=true]), input:enabled, summary, [href]')", quoted))
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// shoot saves a picture of the page.
func (p *person) shoot(name string) {
	p.t.Helper()
	if *portalShots == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*portalShots, name+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// prefers sets the browser's preference for light or dark pages.
func (p *person) prefers(scheme string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
			Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		p.t.Fatal(err)
	}
}

// judge checks the page with axe-core, if available.
func (p *person) judge(name string) {
	p.t.Helper()
	if *axeScript == "" {
		return
	}
	if found := p.axe(); found != "[]" {
		p.t.Errorf("axe finds on %s: %s", name, found)
	}
}

// axe returns axe-core's findings, as a list.
func (p *person) axe() string {
	p.t.Helper()
	script, err := os.ReadFile(*axeScript)
	if err != nil {
		p.t.Fatal(err)
	}
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](string(script)+`;
		axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.help,
			v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary)]), null, 1))`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// TestPortalInABrowser follows a newcomer: sign in, paste addresses, choose rows, launch, follow,
// read. Pages' texts are shown as text, a reload loses nothing, and the browser has no complaint.
func TestPortalInABrowser(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--egress-allow",
		"127.0.0.0/8", "--egress-origin", "*.example="+newShop(t), "--chromium", "none")}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	p := newPerson(t, path, s.Server)

	p.signsIn(s)
	p.sees(`document.body.innerText.includes("You have no rows yet")`)
	p.shows("start")

	p.do(chromedp.SendKeys(chromedp.CSS("#addresses"), "no address"))
	p.clicks("form button")
	p.sees(`document.querySelector("[role=alert]").innerText.includes("no address")`)
	var list []string
	for i := range 45 {
		list = append(list, fmt.Sprintf("http://shop.example/list/%d", i))
	}
	asks[bool](p, `(document.querySelector("#addresses").select(), true)`)
	p.do(chromedp.SendKeys(chromedp.CSS("#addresses"), strings.Join(list, "\n")))
	p.clicks("form button") // the first of three
	p.sees(`document.querySelector(".card td")`)
	p.do(chromedp.Reload())
	p.sees(`document.querySelector(".card td")`)
	p.shows("candidates")
	p.clicks(".card button") // the second
	p.sees(`document.querySelector("#cap")`)
	p.do(chromedp.Reload())
	p.sees(`document.querySelector("#cap")?.value`)
	p.sees(`document.querySelector(".facts + .hint").innerText.includes("fail cost nothing")`)
	p.shows("launch")
	p.clicks("form button") // the third
	p.sees(`location.pathname.startsWith("/portal/runs/")`)
	p.sees(`document.querySelector(".state.completed, .state.success")`)
	p.sees(`document.querySelector("section td")?.innerText.includes("404")`)
	p.sees(`document.querySelector("section td .hint").innerText === "The page is gone. Leave it out."`)
	p.shows("run")
	if n := asks[string](p, `document.querySelector("section td.n").innerText`); n != "5" {
		t.Errorf("%s addresses failed, want 5", n)
	}

	p.clicks(".actions a")
	p.sees(`document.querySelectorAll(".rows tbody tr").length > 5`)
	p.sees(`[...document.querySelectorAll(".rows td")].some(c => c.innerText.includes("<script>"))`)
	p.shows("rows")
	p.readsRows()
	p.do(chromedp.Navigate(s.Server + "/portal/runs"))
	p.sees(`document.querySelector("table.runs td")`)
	p.do(chromedp.EmulateViewport(390, 844))
	if right := asks[float64](p, `document.querySelector("td .state")
		.getBoundingClientRect().right`); right > 390 {
		t.Errorf("the state of a run ends at %.0f, and a phone at 390", right)
	}
	p.shows("runs")
	p.do(chromedp.Navigate(s.Server + "/portal/rows"))
	p.sees(`document.querySelector("table td")`)
	p.shows("groups")

	p.clicks(".who button")
	p.sees(`location.pathname === "/sign-in" && document.querySelector("#password")`)
	if asks[int](p, `sessionStorage.length`) != 0 {
		t.Error("what was entered stays in the browser after the sign-out")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(p.said, "\n"))
	}
	product.Down(t)
}

// opensMenus opens each menu above the rows. Every menu fits a phone's screen.
func (p *person) opensMenus() {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(390, 844))
	for _, menu := range []string{"Columns", "Export"} {
		find := fmt.Sprintf(`[...document.querySelectorAll(".filter summary")].find(s =>
			s.innerText === %q)`, menu)
		asks[bool](p, "("+find+".click(), true)")
		p.sees(find + ".parentElement.open")
		if wide := asks[int64](p, `document.documentElement.scrollWidth`); wide > 390 {
			p.t.Errorf("with %s open the page is %d wide, and a phone 390", menu, wide)
		}
		asks[bool](p, "("+find+".parentElement.querySelector('input, a').focus(), true)")
		p.do(chromedp.KeyEvent("\u001b")) // Escape
		p.sees("!" + find + ".parentElement.open && document.activeElement === " + find)
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}

// readsRows scrolls, sorts, filters and opens rows, including the hostile ones.
func (p *person) readsRows() {
	p.t.Helper()
	if title := asks[string](p, `document.title`); strings.Contains(title, "taken") {
		p.t.Errorf("a row has set the title: %q", title)
	}
	if asks[bool](p, `[...document.querySelectorAll("main img, main script")].length > 0 ||
		/[\u202a-\u202e\u2066-\u2069\u0007\u200b]/.test(document.body.textContent)`) {
		p.t.Error("what a page says is more than text")
	}
	p.sees(`document.querySelector(".rows tr[aria-rowindex='2']")`)
	for range 8 { // to the last of 960 rows, in their original order
		asks[bool](p, `(document.querySelector(".rows").scrollTop = 1e9, true)`)
		p.sees(`!document.querySelector(".rows table[aria-rowcount='-1']") ||
			document.querySelector(".rows").scrollTop + 2000 < document.querySelector(".rows").scrollHeight`)
	}
	p.sees(`document.querySelector(".rows table").getAttribute("aria-rowcount") === "961"`)
	asks[bool](p, `(document.querySelector(".rows").scrollTop = 1e9, true)`)
	p.sees(`document.querySelector(".rows tr[aria-rowindex='961'] td")?.innerText`)
	if n := asks[int](p, `document.querySelectorAll(".rows tbody tr").length`); n > 100 {
		p.t.Errorf("%d rows are in the page, though a few are seen", n)
	}
	asks[bool](p, `(document.querySelector(".rows").scrollTop = 0, true)`)
	p.opensMenus()
	p.clicks("form.filter:has(#row) button") // without a row number
	p.sees(`document.activeElement.matches("#row:invalid")`)
	p.clicks(".rows tr[aria-rowindex='3'] button")
	p.sees(`document.querySelector("dialog[open] dd") && document.activeElement.matches("dialog h2")`)
	p.shows("row")
	p.clicks("dialog > button")
	p.sees(`!document.querySelector("dialog")`)
	price := asks[string](p, `[...document.querySelectorAll("#sort option")].map(o => o.value)
		.find(v => /price/i.test(v)) ?? document.querySelectorAll("#sort option")[1].value`)
	p.do(chromedp.Navigate(asks[string](p, `location.href`) + "&field=" + price +
		"&op=contains&value=12&sort=" + price))
	p.sees(`document.querySelector(".rows table")?.getAttribute("aria-rowcount") === "41"`)
	p.shows("filtered")
	if export := asks[string](p, `document.querySelector(".links a").href`); !strings.Contains(
		export, "filters=") || !strings.Contains(export, "jobId=") {
		p.t.Errorf("the export %s is not of what is seen", export)
	}
}

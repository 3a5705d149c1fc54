package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/browser"
)

// hostileName is hostileTitle without control characters, which names cannot have.
var hostileName = strings.ReplaceAll(hostileTitle, "\u0007", "")

// visit is a person signed in at their own service.
type visit struct {
	*person
	*suite.Service
	product *single
}

// lamps saves a scraper in a group that reads a page of things.
func (v *visit) lamps(group string) (scraper string) {
	t := v.person.t
	t.Helper()
	return suite.Must(v.PutScraper(t.Context(), suite.Scraper{GroupRef: group,
		Scraper: model.Scraper{Name: "Lamps", Type: model.MultipleProducts,
			SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
			ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name",
				Kind: model.Text}}}}))(t)
}

// newVisit starts a service, and signs a person in.
func newVisit(t *testing.T, admin bool, args ...string) *visit {
	t.Helper()
	path := browser.Path(t)
	product := &single{data: t.TempDir(), args: append(append(suite.Fast(), "--egress-allow",
		"127.0.0.0/8", "--egress-origin", "*.example="+newShop(t), "--chromium", "none",
		"--no-rate-limits"), args...)}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	account := map[string]any{"email": "me@example.com", "password": "a long password of mine",
		"customerRef": suite.Must(s.Whoami(t.Context()))(t), "admin": admin}
	if err := s.Admin().Call(t.Context(), "POST", "/api/admin/accounts", nil, account,
		nil); err != nil {
		t.Fatal(err)
	}
	v := &visit{person: newPerson(t, path, s.Server), Service: s, product: product}
	v.do(chromedp.Navigate(s.Server + "/"))
	v.sees(`location.pathname === "/sign-in"`)
	v.do(chromedp.SendKeys(chromedp.CSS("#email"), account["email"].(string)),
		chromedp.SendKeys(chromedp.CSS("#password"), account["password"].(string)))
	v.clicks("form button")
	v.sees(`location.pathname === "/portal" && document.querySelector(".balance strong")`)
	return v
}

// goes opens a place of the portal, and waits for an expression to be true.
func (v *visit) goes(place, expression string) {
	v.person.t.Helper()
	v.do(chromedp.Navigate(v.Server + "/portal" + place))
	v.sees(expression)
	v.harmless()
}

// says waits until the page shows a text.
func (v *visit) says(text string) {
	v.person.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		v.person.t.Fatal(err)
	}
	v.sees(fmt.Sprintf(`document.querySelector("main").innerText.includes(%s)`, quoted))
}

// presses waits for a button of the content by its text, and clicks it.
func (v *visit) presses(text string) {
	v.person.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("main button")].find(b =>
		b.innerText === %q && b.matches(":enabled:not([aria-disabled=true])"))`, text)
	v.sees(find)
	asks[bool](v.person, "("+find+".click(), true)")
}

// enters replaces the text of a field.
func (v *visit) enters(id, text string) {
	v.person.t.Helper()
	quoted, err := json.Marshal("#" + id)
	if err != nil {
		v.person.t.Fatal(err)
	}
	v.sees(fmt.Sprintf(`document.querySelector(%s)`, quoted))
	asks[bool](v.person, fmt.Sprintf(`(document.querySelector(%s).select(), true)`, quoted))
	v.do(chromedp.SendKeys(chromedp.CSS("#"+id), text))
}

// chooses selects a value.
func (v *visit) chooses(id, value string) {
	v.person.t.Helper()
	asks[bool](v.person, fmt.Sprintf(`(() => { const s = document.querySelector("#%s");
		s.value = %q; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`,
		id, value))
}

// harmless checks that no hostile name has taken effect.
func (v *visit) harmless() {
	v.person.t.Helper()
	if asks[bool](v.person, `document.title.includes("taken") && !document.title.includes("<") ||
		[...document.querySelectorAll("main img, main script")].length > 0 ||
		/[\u202a-\u202e\u2066-\u2069\u0007\u200b]/.test(document.body.textContent)`) {
		v.person.t.Errorf("%s: what others have written is more than text",
			asks[string](v.person, "location.pathname"))
	}
}

// ends checks the browser's messages, and stops the service.
func (v *visit) ends() {
	v.person.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	// API refusals also appear there
	complaints := slices.DeleteFunc(v.said, func(text string) bool {
		return strings.Contains(text, "Failed to load resource")
	})
	if len(complaints) > 0 {
		v.person.t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
	}
	v.product.Down(v.person.t)
}

// TestPortalCollects goes through groups, their starts and shares, the calendar, sites, uploads and
// schemas. Names are hostile, and a reload loses nothing.
func TestPortalCollects(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()

	v.goes("/groups", `document.querySelector("#group-name")`)
	v.presses("Create the group") // without a name
	v.sees(`document.querySelector("main .trouble")?.innerText.includes("Name of the group")`)
	v.sees(`document.activeElement.matches("#group-name[aria-invalid=true]") && /^Name of the group .*\.$/.test(
		document.querySelector("#group-name-problem").innerText)`)
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	suite.Must(v.PutGroup(ctx, hostileName))(t)
	v.goes("/groups", `document.querySelectorAll("main table tbody tr").length === 2`)
	v.shows("groups-all")

	scraper := suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{
		Name: "Lamps <b>of</b> the shop", Type: model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name",
			Kind: model.Text}}}}))(t)
	v.goes("/groups/"+group, `document.querySelector("#start-type")`)
	v.chooses("start-type", "DAILY")
	v.presses("Save")
	v.says("Set for 1 scraper.")
	v.presses("Share")
	v.sees(`document.activeElement.id === "share" &&
		document.activeElement.matches("[aria-invalid=true]")`)
	v.enters("share", "friend@example.com, other@example.com")
	v.presses("Share")
	v.says("The group is shared.")
	v.says("other@example.com")
	v.clicks(`main section table button`)
	v.says("The share has ended.")
	v.presses("What would it cost?")
	v.sees(`document.querySelector("#cap")?.value`)
	v.shows("group")
	v.presses("Launch all")
	v.says("Launched: 1. Skipped: 0.")
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#start-type")?.value === "DAILY"`)

	v.goes("/calendar", `document.querySelector(".calendar .again, .calendar .next")`)
	v.presses("Next month")
	v.sees(`location.search.startsWith("?month=") &&
		document.querySelectorAll(".calendar .again").length > 27`)
	v.goes("/calendar?month=9990-02", `document.querySelector(".month").innerText.includes("9990")`)
	v.sees(`document.querySelectorAll(".calendar .again").length === 35`)
	v.do(chromedp.EmulateViewport(390, 844)) // a list of its 28 days
	v.sees(`(b => b.scrollWidth <= b.clientWidth)(document.querySelector("main .scroll")) &&
		[...document.querySelectorAll(".calendar td")].filter(d => d.checkVisibility()).length === 28`)
	v.do(chromedp.EmulateViewport(1280, 900))
	v.shows("calendar")

	v.collectsSites(scraper)
	v.collectsFiles(group)
	v.collectsSchemas()

	v.goes("/groups/"+group, `document.querySelector("#start-type")`)
	asks[bool](v.person, `(document.querySelector(".check input").click(), true)`)
	v.presses("Delete the group")
	v.presses("Remove it now")
	v.sees(`location.pathname === "/portal/groups"`)
	v.sees(`document.querySelectorAll("main table tbody tr").length === 1`)
	v.ends()
}

func (v *visit) collectsSites(scraper string) {
	t := v.person.t
	t.Helper()
	v.goes("/sites", `document.querySelector("main tbody a")`)
	v.shows("sites")
	v.clicks("main tbody a")
	v.sees(`document.querySelector("#links")`)
	v.enters("links", "http://shop.example/list/1\nnowhere")
	v.presses("Send the links")
	v.says("This line is not an address: nowhere")
	v.enters("links", "http://shop.example/list/1\nhttp://shop.example/list/2#x")
	v.presses("Send the links")
	v.says("The site has 2 links.")
	v.sees(`document.querySelectorAll("main tbody tr").length === 2`)
	if err := v.Call(t.Context(), "PUT", "/api/scraper/site", nil, map[string]any{
		"name": "Lamps", "scraperRef": scraper, "links": []map[string]any{
			{"url": "http://shop.example/list/1", "title": hostileName},
			{"url": "http://shop.example/list/3"}}}, nil); err != nil {
		t.Fatal(err)
	}
	v.goes("/sites/"+scraper+"?q=script", `document.querySelectorAll("main tbody tr").length === 1`)
	v.presses("Harvest the sitemaps")
	v.says("Addresses found: 0.")
	v.shows("site")
	v.presses("Delete the site")
	v.presses("Delete it with its 2 links")
	v.says("The scraper has no site.")
}

func (v *visit) collectsFiles(group string) {
	t := v.person.t
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(file, []byte("title,price\n"+hostileName+",1\nlamp,2\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	v.goes("/uploads", `document.querySelector("#file")`)
	v.presses("Send the file")
	v.says("Choose a file.")
	v.chooses("group", group)
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.sees(`document.querySelector("#upload-name").value === "prices"`)
	v.shows("uploads")
	v.presses("Send the file")
	v.says("The file was accepted.")
	v.goes("/uploads", `document.querySelector("#file")`)
	v.chooses("group", group)
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.presses("Send the file") // with a taken name
	v.sees(`document.querySelector("main .trouble")?.innerText.includes("Choose another name")`)
	v.movesFiles(group)
	v.sendsAgain(group)
	v.goesOn(group)
}

// movesFiles renames an upload, and moves it to the other group.
func (v *visit) movesFiles(group string) {
	t := v.person.t
	t.Helper()
	v.goes("/uploads", `document.querySelector("main tbody td")`)
	v.presses("Rename or move")
	v.sees(`document.activeElement?.id === "sent-name"`)
	v.enters("sent-name", " ")
	v.presses("Save")
	v.sees(`document.querySelector("#sent-name[aria-invalid=true]")`)
	v.shows("uploads-move")
	v.enters("sent-name", "prices of <b>today</b>")
	other := asks[string](v.person, fmt.Sprintf(`[...document.querySelectorAll(
		"#sent-group option")].find(o => o.value !== %q).value`, group))
	v.chooses("sent-group", other)
	v.presses("Save")
	v.says("Saved.")
	v.sees(`document.querySelector("main tbody td").innerText === "prices of <b>today</b>"`)
	v.do(chromedp.Reload())
	v.sees(fmt.Sprintf(`document.querySelector("main tbody a")?.pathname === "/portal/rows/%s"`,
		other))
	v.harmless()
}

// breaking makes uploads break off half way, and the service not answer, while the browser's
// storage says so. Timers of two seconds or more run only on command.
const breaking = `(() => { const send = XMLHttpRequest.prototype.send, after = setTimeout;
	const held = [];
	window.setTimeout = (what, ms) => ms >= 2000 ? held.push(what) : after(what, ms);
	window.later = () => held.splice(0).forEach(what => what());
	const ask = fetch;
	window.fetch = (...said) => localStorage.away ? Promise.reject(new TypeError()) : ask(...said);
	const open = XMLHttpRequest.prototype.open;
	window.sent = []; // the offsets of parts
	XMLHttpRequest.prototype.open = function (method, to, ...rest) {
		this.to = to;
		return open.call(this, method, to, ...rest); };
	XMLHttpRequest.prototype.send = function (body) {
		const offset = new URL(this.to, location).searchParams.get("offset"),
			breaks = localStorage.breaks;
		if (offset) { sent.push(Number(offset)); }
		if (!breaks || breaks !== "yes" && breaks !== offset) { return send.call(this, body); }
		setTimeout(() => {
			this.upload.dispatchEvent(new ProgressEvent("progress", {loaded: body.size / 2}));
			this.dispatchEvent(new ProgressEvent("error"));
		}); }; })()`

// breaks sets whether uploads break off.
func (v *visit) breaks(now bool) {
	v.person.t.Helper()
	v.breaksAt(map[bool]string{true: "yes"}[now])
}

// breaksAt makes upload parts break off that begin at an offset.
func (v *visit) breaksAt(offset string) {
	v.person.t.Helper()
	asks[bool](v.person, fmt.Sprintf(`(localStorage.breaks = %q, true)`, offset))
}

// sendsAgain sends a file whose connection breaks, across a reload, until it arrives. It is stored
// once.
func (v *visit) sendsAgain(group string) {
	t := v.person.t
	t.Helper()
	file := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(file, []byte("title\n"+strings.Repeat("x", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	v.before(breaking)
	v.goes("/uploads", `document.querySelector("#file")`)
	v.chooses("group", group)
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.clicks("#upload-name") // without interaction a page may not ask before it is left
	v.breaks(true)
	v.presses("Send the file")
	v.says("The connection broke.")
	v.says("50%")
	v.shows("uploads-broke")
	asks[bool](v.person, `(later(), true)`)
	v.says(" 2 of 5.")
	v.presses("Resume now")
	v.says(" 3 of 5.")
	v.presses("Stop sending")
	v.says("You stopped the upload.")
	v.presses("Try again")
	v.says("The connection broke.")
	v.leavesAnyway()
	v.do(chromedp.Reload())
	v.says("You left this page before a file was sent.")
	v.sees(fmt.Sprintf(`document.querySelector("#group").value === %q &&
		document.querySelector("#upload-name").value === "long"`, group))
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.presses("Send the file")
	v.says("The connection broke.")
	v.breaks(false)
	asks[bool](v.person, `(dispatchEvent(new Event("online")), true)`) // browsers report this so
	v.says("The file was accepted.")
	var list struct{ Items []struct{ Name string } }
	if err := v.Call(t.Context(), "GET", "/api/scraper/list", nil, nil, &list); err != nil {
		t.Fatal(err)
	}
	made := slices.DeleteFunc(list.Items, func(one struct{ Name string }) bool {
		return one.Name != "long"
	})
	if len(made) != 1 {
		t.Errorf("the file has made %v, want one scraper", list.Items)
	}
}

// goesOn sends a file of three parts, of which the second breaks off, and continues across a
// reload. Parts that have arrived are not sent again.
func (v *visit) goesOn(group string) {
	t := v.person.t
	t.Helper()
	file := filepath.Join(t.TempDir(), "parts.csv")
	line := strings.Repeat("x", 30_000) + "\n"
	if err := os.WriteFile(file, []byte("title\n"+strings.Repeat(line, 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() {
		t.Helper()
		v.chooses("group", group)
		v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
		v.clicks("#upload-name")
		v.presses("Send the file")
	}
	sent := func(want ...int) {
		t.Helper()
		if got := asks[[]int](v.person, `sent`); !slices.Equal(got, want) {
			t.Errorf("the parts at %v were sent, want %v", got, want)
		}
	}
	v.goes("/uploads", `document.querySelector("#file")`)
	v.breaksAt("4000000")
	begin()
	v.says("The connection broke.")
	asks[bool](v.person, `(localStorage.away = "yes", true)`)
	v.presses("Resume now")
	v.says(" 2 of 5.")
	if at := asks[int](v.person, `document.querySelector("#sent").value`); at != 4_000_000 {
		t.Errorf("%d bytes have come, the page says, while the service does not answer", at)
	}
	asks[bool](v.person, `(localStorage.removeItem("away"), true)`)
	v.presses("Resume now")
	v.says(" 3 of 5.")
	sent(0, 4_000_000, 4_000_000)
	v.do(chromedp.Reload())
	v.says("You left this page before a file was sent.")
	v.breaksAt("")
	begin()
	v.says("The file was accepted.")
	sent(4_000_000, 8_000_000)
}

// leavesAnyway confirms when a page asks whether it may be left.
func (v *visit) leavesAnyway() {
	v.person.t.Helper()
	if err := chromedp.Listen(v.ctx, func(event any) {
		if _, asked := event.(*page.EventJavascriptDialogOpening); asked {
			go func() { // otherwise the answer would wait for it
				_, _ = chromedp.Call(v.ctx, page.HandleJavaScriptDialog,
					page.HandleJavaScriptDialogParams{Accept: true}) // else the browser has ended
			}()
		}
	}); err != nil {
		v.person.t.Fatal(err)
	}
}

func (v *visit) collectsSchemas() {
	v.person.t.Helper()
	v.goes("/schemas", `document.querySelector("#schema-content")`)
	v.enters("schema-name", "Things")
	v.enters("schema-content", "{")
	v.presses("Save")
	v.says("This is not JSON")
	v.enters("schema-content", `{"type": "object", "properties": {"title": {"type": "string"}}}`)
	v.presses("Save")
	v.sees(`/^\/portal\/schemas\/[0-9a-f]{24}$/.test(location.pathname)`)
	v.says("Change the schema")
	v.shows("schema")
	v.goes("/schemas", `document.querySelector("main tbody a")`)
	v.shows("schemas")
	v.clicks("main tbody a")
	v.presses("Delete the schema")
	v.presses("Remove it now")
	v.says("There are no schemas yet.")
}

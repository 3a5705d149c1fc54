package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// counter is the part of the payment provider that a top-up in a browser needs.
type counter struct {
	mu   sync.Mutex
	made int               // sessions
	form map[string]string // of the newest session
	back string            // where browsers find the service; "": no customer comes back
}

// openCounter starts a counter, and returns the flags for it.
func openCounter(t *testing.T) (*counter, []string) {
	t.Helper()
	c := &counter{}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/checkout/sessions" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, "<link rel=icon href=data:,><title>Pay</title><h1>Pay here</h1>"+
				"<a id=paid href=%q>Pay</a> <a id=left href=%q>Cancel</a>",
				c.leadsBack("success_url"), c.leadsBack("cancel_url"))
			return
		}
		_ = r.ParseForm() // an unreadable form counts as empty
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made++
		c.form = map[string]string{}
		for name := range r.Form {
			c.form[name] = r.Form.Get(name)
		}
		_, _ = fmt.Fprintf(w, `{"id": "cs_%d", "url": "%s/pay", "expires_at": %d}`, c.made,
			server.URL, time.Now().Add(24*time.Hour).Unix())
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	key, secret := filepath.Join(dir, "key"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{key: "sk_test_1", secret: paySecret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, []string{"--stripe-key-file", key, "--stripe-secret-file", secret,
		"--stripe-return-url", "http://localhost", "--stripe-url", server.URL}
}

// leadsBack returns where the newest session returns to.
func (c *counter) leadsBack(by string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Replace(c.form[by], "http://localhost", c.back, 1)
}

// pays reports the newest session as paid.
func (c *counter) pays(v *visit) {
	t := v.person.t
	t.Helper()
	c.mu.Lock()
	made := c.made
	cents, err := strconv.Atoi(c.form["line_items[0][price_data][unit_amount]"])
	metadata := map[string]string{}
	for name, value := range c.form {
		if member, is := strings.CutPrefix(name, "metadata["); is {
			metadata[strings.TrimSuffix(member, "]")] = value
		}
	}
	c.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(map[string]any{"id": fmt.Sprint("evt_", made), "object": "event",
		"type": "checkout.session.completed", "created": time.Now().Unix(),
		"data": map[string]any{"object": map[string]any{"id": fmt.Sprint("cs_", made),
			"object": "checkout.session", "mode": "payment", "status": "complete",
			"payment_status": "paid", "amount_total": cents, "currency": "eur",
			"payment_intent": fmt.Sprint("pi_", made), "metadata": metadata}}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Unix()
	sum := hmac.New(sha256.New, []byte(paySecret))
	_, _ = fmt.Fprintf(sum, "%d.%s", at, told) // a hash accepts everything
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		v.Server+"/api/subscription/webhook", strings.NewReader(string(told)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at,
		hex.EncodeToString(sum.Sum(nil))))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusNoContent {
		t.Fatalf("the notice is answered %d", answer.StatusCode)
	}
}

// TestPortalKeepsAccounts goes through wallet, top-up, statements, plan, keys, notices, webhooks
// and preferences. People see euros and cents, never micros.
func TestPortalKeepsAccounts(t *testing.T) {
	t.Parallel()
	till, flags := openCounter(t)
	caught := make(chan string, 64) // events' names
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case caught <- r.Header.Get("webhook-id"):
		default: // more than the test checks
		}
	}))
	t.Cleanup(hook.Close)
	v := newVisit(t, false, flags...)

	v.goes("/wallet", `document.querySelector("#amount")`)
	v.enters("amount", "25.505")
	v.presses("Go to the payment")
	v.says("Enter an amount in euros and cents")
	v.enters("amount", "2")
	v.presses("Go to the payment")
	v.sees(`document.querySelector("main .trouble")?.innerText.includes("Amount in euro")`)
	v.enters("amount", "25.50")
	v.presses("Go to the payment")
	v.sees(`document.querySelector("h1")?.innerText === "Pay here"`)
	v.goes("/wallet", `document.querySelector("#amount")`)
	v.says("The payment has not arrived yet.")
	till.pays(v)
	v.says("The payment has arrived")
	v.sees(`document.querySelector(".balance strong").innerText.includes("1,025.50")`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("main tbody td")`)
	v.says("Top-up")
	v.shows("wallet")
	v.do(chromedp.EmulateViewport(390, 844))
	if right := asks[float64](v.person, `document.querySelector("main tbody td.n")
		.getBoundingClientRect().right`); right > 390 {
		t.Errorf("a phone, 390 wide, shows no amounts of the ledger: they end at %.0f", right)
	}
	v.do(chromedp.EmulateViewport(1280, 900))
	v.goes("/statements", `document.querySelectorAll("main tbody tr").length === 24`)
	if page := asks[string](v.person, `document.querySelector("main tbody a").href`); !strings.
		Contains(page, "format=html") {
		t.Errorf("the statement is at %s", page)
	}
	v.shows("statements")
	v.goes("/prices", `document.querySelector("main tbody td")`)
	if alike := asks[int](v.person, `(names => names.length - new Set(names).size)(
		[...document.querySelectorAll("main tbody td:first-child")].map(c => c.innerText))`); alike > 0 {
		t.Errorf("%d prices have the name of another one", alike)
	}
	v.shows("prices")
	v.goes("/plan", `document.querySelectorAll(".plans section").length === 5`)
	v.shows("plan")
	v.keepsKeys()
	v.keepsWebhooks(hook.URL, caught)
	v.keepsPreferences()
	for _, place := range []string{"wallet", "prices", "plan", "preferences"} {
		v.goes("/"+place, `document.querySelector("h1") &&
			!document.querySelector("[role=status]:not(:empty):not(.note)")`)
		if asks[bool](v.person, `/micros/i.test(document.body.innerText)`) {
			t.Errorf("/%s says micros", place)
		}
	}
	v.ends()
}

func (v *visit) keepsKeys() {
	t := v.person.t
	t.Helper()
	v.goes("/keys", `document.querySelector("#key-name")`)
	v.presses("Create the key") // without a name
	v.sees(`document.querySelector("main .trouble")?.innerText.startsWith("Name")`)
	v.enters("key-name", hostileName[:40])
	v.presses("Create the key")
	v.sees(`document.querySelector(".secret")`)
	secret := asks[string](v.person, `document.querySelector(".secret").innerText`)
	program := suite.Client{Server: v.Server, Token: secret}
	if ref, err := program.Whoami(t.Context()); err != nil || ref == "" {
		t.Errorf("the key is refused: %v", err)
	}
	v.presses("I have saved it")
	v.sees(`!document.querySelector(".secret")`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("main tbody td")`)
	if asks[bool](v.person, fmt.Sprintf(`document.documentElement.outerHTML.includes(%q)`,
		secret)) {
		t.Error("the secret is shown again")
	}
	v.harmless()
	v.shows("keys")
	v.sees(`document.querySelectorAll("main tbody tr").length === 2`)
	asks[bool](v.person, `([...document.querySelectorAll("main tbody tr")].at(-1).
		querySelector("button").click(), true)`)
	v.presses("Revoke it now")
	v.says("The key is refused from now on.")
	if _, err := program.Whoami(t.Context()); suite.CodeOf(err) != "unauthorized" {
		t.Errorf("the key that was revoked: %v", err)
	}

	v.goes("/notices", `document.querySelector(".notices li")`)
	v.shows("notices")
	v.presses("Mark all as read")
	v.says("All notices are marked as read.")
	v.sees(`document.querySelectorAll(".notices .unread").length === 0`)
	v.sees(`!document.querySelector("header nav").innerText.includes("unread")`)
}

func (v *visit) keepsWebhooks(hooked string, caught <-chan string) {
	v.person.t.Helper()
	v.goes("/webhooks", `document.querySelector("#hook-url")`)
	v.enters("hook-url", "nowhere")
	v.presses("Create the webhook")
	v.sees(`document.querySelector("main .trouble")?.innerText.startsWith("Address") &&
		document.activeElement.matches("#hook-url[aria-invalid=true]")`)
	v.enters("hook-url", hooked)
	v.presses("Create the webhook")
	v.sees(`document.querySelector(".secret")?.innerText.startsWith("whsec_")`)
	v.presses("I have saved it")
	v.clicks("main tbody a")
	v.sees(`location.pathname.startsWith("/portal/webhooks/")`)
	v.presses("Send a test")
	v.says("A test is on its way.")
	if id := <-caught; id == "" {
		v.person.t.Error("the webhook was sent without its id")
	}
	for asks[bool](v.person, `!document.querySelector("main").innerText.includes("Delivered")`) {
		v.presses("Refresh")
		<-time.After(50 * time.Millisecond)
	}
	v.shows("webhook")
	v.enters("hook-url", "http://127.0.0.1:1/")
	v.presses("Save")
	v.says("Saved.")
	v.presses("Send a test")
	v.says("A test is on its way.")
	const failed = `document.querySelector("main tbody").innerText`
	for !asks[bool](v.person, failed+`.includes("takes no connection")`) {
		v.presses("Refresh")
		<-time.After(50 * time.Millisecond)
	}
	if said := asks[string](v.person, failed); strings.Contains(said, "connect_failed") ||
		!strings.Contains(said, "Check that your receiver runs") {
		v.person.t.Errorf("a delivery that failed says %s", said)
	}
	v.switches("Switched on")
	v.presses("Save")
	v.says("Nothing is sent now. To resume, tick Switched on under Change the webhook")
	v.switches("Switched on")
	v.presses("Save")
	v.sees(`!document.querySelector("main").innerText.includes("Nothing is sent now")`)
	v.enters("hours", "1e3") // a number field accepts it
	v.presses("Create a new secret")
	v.says("Enter a whole number of hours")
	asks[bool](v.person, `(document.querySelector("#hours").select(), true)`)
	v.do(chromedp.KeyEvent("\b"))
	v.presses("Create a new secret")
	v.sees(`document.activeElement.matches("#hours[aria-invalid=true]") &&
		!document.querySelector(".secret")`)
	v.enters("hours", "24")
	v.presses("Create a new secret")
	v.sees(`document.querySelector(".secret")?.innerText.startsWith("whsec_")`)
	v.presses("I have saved it")
	v.presses("Delete the webhook")
	v.presses("Delete it with its log")
	v.sees(`location.pathname === "/portal/webhooks"`)
	v.says("There are no webhooks yet.")
}

// switches clicks a checkbox, found by its text.
func (v *visit) switches(text string) {
	v.person.t.Helper()
	asks[bool](v.person, fmt.Sprintf(`([...document.querySelectorAll("main label.check")]
		.find(l => l.innerText === %q).querySelector("input").click(), true)`, text))
}

func (v *visit) keepsPreferences() {
	v.person.t.Helper()
	v.goes("/preferences", `document.querySelector("#low") && document.querySelector(".ways")`)
	v.enters("low", "7.25")
	v.presses("Save")
	v.says("Saved.")
	v.chooses("told-SCRAPER_RUN_COMPLETED", "NONE")
	v.sees(`document.querySelector(".ways + [role=status]")?.innerText === "Saved."`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#low")?.value === "7.25" &&
		document.querySelector("#told-SCRAPER_RUN_COMPLETED")?.value === "NONE"`)
	v.shows("preferences")
}

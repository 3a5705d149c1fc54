package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// device is an authenticator of the browser, which verifies its owner unless told otherwise.
type device struct {
	*person
	id webauthn.AuthenticatorID
}

func (p *person) hasDevice() device {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	made, err := chromedp.Call(p.ctx, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol:       webauthn.AuthenticatorProtocolCtap2,
			Ctap2version:   webauthn.Ctap2versionCtap21,
			Transport:      webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true,
			AutomaticPresenceSimulation: true}})
	if err != nil {
		p.t.Fatal(err)
	}
	return device{p, made.AuthenticatorID}
}

// knows sets whether the device verifies the person as its owner.
func (d device) knows(owner bool) {
	d.t.Helper()
	if _, err := chromedp.Call(d.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{
		AuthenticatorID: d.id, IsUserVerified: owner}); err != nil {
		d.t.Fatal(err)
	}
}

// passkeys returns the number of passkeys on the device.
func (d device) passkeys() int {
	d.t.Helper()
	held, err := chromedp.Call(d.ctx, webauthn.GetCredentials,
		webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil {
		d.t.Fatal(err)
	}
	return len(held.Credentials)
}

// adds fills the form of a new passkey.
func (d device) adds(name, password string) {
	d.t.Helper()
	d.sees(`document.querySelector("#new-passkey:not([hidden])")`)
	asks[bool](d.person, `(document.querySelector("#new-passkey").reset(), true)`)
	d.do(chromedp.SendKeys(chromedp.CSS("#name"), name),
		chromedp.SendKeys(chromedp.CSS("#current"), password))
	d.clicks("#new-passkey button")
}

// refused waits until the page shows a problem.
func (d device) refused(text string) {
	d.t.Helper()
	d.sees(fmt.Sprintf(`document.querySelector("#passkey-problem:not([hidden])")?.innerText
		.includes(%q)`, text))
}

// leaves signs out of the portal.
func (d device) leaves() {
	d.t.Helper()
	d.do(chromedp.Navigate(d.server + "/portal"))
	// The head grows as its figures arrive, so a pointer could hit the link beside the button.
	d.sees(`document.querySelector(".who button")`)
	d.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".who button").click()`))
	d.sees(`location.pathname === "/sign-in" && document.querySelector("#passkey:not([hidden])")`)
}

// enters signs in with a passkey.
func (d device) enters() {
	d.t.Helper()
	d.clicks("#passkey")
	d.sees(`location.pathname === "/portal" && document.querySelector(".balance strong")`)
}

// asserted makes the device sign a challenge, and returns what a page would send.
const asserted = `(async challenge => {
	const bytes = text => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")),
		c => c.charCodeAt(0));
	const text = of => btoa(String.fromCharCode(...new Uint8Array(of)))
		.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
	const made = await navigator.credentials.get({ publicKey: { rpId: "localhost",
		challenge: bytes(challenge), userVerification: "required" } });
	return JSON.stringify({ id: text(made.rawId),
		clientDataJSON: text(made.response.clientDataJSON),
		authenticatorData: text(made.response.authenticatorData),
		signature: text(made.response.signature), userHandle: text(made.response.userHandle) });
})(%q)`

// signed makes the open page sign a challenge.
func (d device) signed(challenge string) string {
	d.t.Helper()
	answer, err := chromedp.Run(d.ctx, chromedp.Evaluate[string](
		fmt.Sprintf(asserted, challenge), chromedp.EvalAwaitPromise))
	if err != nil {
		d.t.Fatal(err)
	}
	return answer
}

// posts makes the open page call the API, and returns the status and the body.
func (d device) posts(path, body string) (status int, answer string) {
	d.t.Helper()
	told, err := chromedp.Run(d.ctx, chromedp.Evaluate[string](fmt.Sprintf(`fetch(%q, {
		method: "POST", headers: { "Content-Type": "application/json" }, body: %q || undefined })
		.then(async r => r.status + " " + await r.text())`, path, body), chromedp.EvalAwaitPromise))
	if err != nil {
		d.t.Fatal(err)
	}
	number, answer, _ := strings.Cut(told, " ")
	if _, err := fmt.Sscan(number, &status); err != nil {
		d.t.Fatal(err)
	}
	return status, answer
}

// challenge gets a new sign-in challenge through the open page.
func (d device) challenge() string {
	d.t.Helper()
	status, answer := d.posts("/api/auth/sign-in/passkey/challenge", "")
	var asked struct{ Challenge string }
	if err := json.Unmarshal([]byte(answer), &asked); status != 200 || err != nil {
		d.t.Fatalf("%d %s", status, answer)
	}
	return asked.Challenge
}

// noPasskey is what the page says of a passkey that is not accepted.
const noPasskey = "This passkey signs nobody in: try again, or use the password."

// TestPasskeysInABrowser follows a person with a device: a passkey is made, signs in, and is
// removed. Signatures made for another place or by a copy are refused. Each signature works only
// once.
func TestPasskeysInABrowser(t *testing.T) {
	t.Parallel()
	p, s, product := atSignIn(t)
	account := map[string]string{"email": "ann@shop.example", "password": "a long password",
		"customerRef": suite.Must(s.Whoami(t.Context()))(t)}
	if err := s.Admin().Call(t.Context(), "POST", "/api/admin/accounts", nil, account,
		nil); err != nil {
		t.Fatal(err)
	}
	d := p.hasDevice()

	p.opens("/sign-in", "Sign in") // with an IP address, for which browsers have no passkeys
	d.sees(`document.querySelector("#passkey")`)
	if asks[bool](p, `!document.querySelector("#passkey").hidden`) {
		p.clicks("#passkey")
		d.refused("http://localhost")
	}
	p.server = strings.Replace(p.server, "127.0.0.1", "localhost", 1)
	p.opens("/sign-in", "Sign in")
	p.clicks("#passkey")
	d.refused("Nothing was confirmed") // the device has none
	p.types([2]string{"email", account["email"]}, [2]string{"password", account["password"]})
	p.sees(`location.pathname === "/portal"`)

	p.opens("/sign-in/passkeys", "Passkeys")
	d.adds("Phone", "a wrong password")
	d.refused("The password is wrong")
	d.knows(false)
	d.adds("Phone", account["password"])
	d.refused("Nothing was confirmed")
	d.knows(true)
	d.adds(hostileName[:60], account["password"])
	p.sees(`document.querySelector("main form button.second")`)
	if asks[bool](p, `document.title.includes("taken") || !!document.querySelector("main img")`) {
		t.Error("the name of a passkey is more than text")
	}
	p.shows("passkeys-one")
	d.adds("Phone again", account["password"])
	d.refused("This device has a passkey of the account already.")
	if n := d.passkeys(); n != 1 {
		t.Errorf("the device has %d passkeys, want 1", n)
	}

	d.leaves()
	d.knows(false)
	p.clicks("#passkey")
	d.refused("Nothing was confirmed")
	d.knows(true)
	d.enters()
	d.leaves()
	d.refusesOthers()
	d.enters()
	d.leaves()
	counted := d.signedOnly(0) // a copy of it would count on from when it was made
	p.clicks("#passkey")
	d.refused(noPasskey)
	d.signedOnly(counted)
	d.enters()

	p.opens("/sign-in/passkeys", "Passkeys")
	p.clicks("main form button.second")
	p.sees(`document.querySelector("main").innerText.includes("There are none yet.")`)
	d.leaves()
	p.clicks("#passkey")
	d.refused(noPasskey)
	if asks[string](p, `location.pathname`) != "/sign-in" {
		t.Error("a passkey that was removed has signed in")
	}
	product.Down(t)
}

// refusesOthers: a page on another port of the same host can make the device sign, but the service
// sees the origin. It accepts each answer of its own pages once.
func (d device) refusesOthers() {
	d.t.Helper()
	const signIn = "/api/auth/sign-in/passkey"
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<link rel=icon href=data:,><h1>Win a lamp</h1>")
	}))
	d.t.Cleanup(evil.Close)
	asked := d.challenge()
	d.do(chromedp.Navigate(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)))
	d.headed("Win a lamp")
	stolen := d.signed(asked)
	d.opens("/sign-in", "Sign in")
	if status, answer := d.posts(signIn, stolen); status != http.StatusUnauthorized {
		d.t.Errorf("what another place has had signed is answered %d %s", status, answer)
	}
	if status, answer := d.posts(signIn, d.signed("bm8gY2hhbGxlbmdlIG9mIG91cnM")); status !=
		http.StatusUnauthorized {
		d.t.Errorf("a challenge that nobody has made is answered %d %s", status, answer)
	}
	once := d.signed(d.challenge())
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, answer := d.posts(signIn, once); status != want {
			d.t.Errorf("an answer that was given is answered %d %s, want %d", status, answer, want)
		}
	}
	d.leaves()
}

// addsPasskey is WebAuthn.addCredential without the members that this authenticator refuses.
var addsPasskey = cdp.Command[map[string]any, cdp.Empty]{Method: webauthn.CommandAddCredential}

// signedOnly sets how often the device says that its only passkey has signed, and returns how often
// it has.
func (d device) signedOnly(times float64) (before float64) {
	d.t.Helper()
	held, err := chromedp.Call(d.ctx, webauthn.GetCredentials,
		webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil || len(held.Credentials) != 1 {
		d.t.Fatalf("the device has %v: %v", held, err)
	}
	passkey := held.Credentials[0]
	if _, err := chromedp.Call(d.ctx, webauthn.RemoveCredential, webauthn.RemoveCredentialParams{
		AuthenticatorID: d.id, CredentialID: passkey.CredentialID}); err != nil {
		d.t.Fatal(err)
	}
	if _, err := chromedp.Call(d.ctx, addsPasskey, map[string]any{"authenticatorId": d.id,
		"credential": map[string]any{"credentialId": passkey.CredentialID,
			"isResidentCredential": true, "rpId": passkey.RpID, "privateKey": passkey.PrivateKey,
			"userHandle": passkey.UserHandle, "signCount": times}}); err != nil {
		d.t.Fatal(err)
	}
	return passkey.SignCount
}

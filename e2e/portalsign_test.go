package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/emersion/go-smtp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// mailbox is an SMTP server that passes on the text of each e-mail.
type mailbox chan string

func openMailbox(t *testing.T) (mailbox, string) {
	t.Helper()
	box := make(mailbox, 16)
	server := smtp.NewServer(box)
	server.Domain, server.AllowInsecureAuth = "localhost", true
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })   // the test is over
	return box, listener.Addr().String()
}

// NewSession implements smtp.Backend.
func (m mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return letters{m}, nil }

type letters struct{ to mailbox }

func (letters) Reset()                               {}
func (letters) Logout() error                        { return nil }
func (letters) Mail(string, *smtp.MailOptions) error { return nil }
func (letters) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (l letters) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err == nil {
		l.to <- strings.ReplaceAll(string(text), "=\r\n", "")
	}
	return err
}

// openIssuer starts an OpenID Connect issuer that signs everybody in as "ann" without a question.
// It returns the flags for it.
func openIssuer(t *testing.T) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	var server *httptest.Server
	var nonce string // of the current sign-in
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := server.URL
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]string{"issuer": at, "jwks_uri": at + "/keys",
				"authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token"}
		case "/keys":
			answer = map[string]any{"keys": []map[string]string{{"kty": "EC", "crv": "P-256",
				"kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]),
				"y": encode(point[33:])}}}
		case "/authorize":
			asked := r.URL.Query()
			nonce = asked.Get("nonce")
			http.Redirect(w, r, asked.Get("redirect_uri")+"?"+url.Values{"code": {"1"},
				"state": {asked.Get("state")}}.Encode(), http.StatusSeeOther)
			return
		case "/token":
			said, _ := json.Marshal(map[string]any{"iss": at, "aud": "web", "sub": "ann",
				"nonce": nonce, "email": "ann@shop.example", "email_verified": true,
				"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
			text := encode([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + encode(said)
			sum := sha256.Sum256([]byte(text))
			a, b, err := ecdsa.Sign(rand.Reader, key, sum[:])
			if err != nil {
				t.Error(err)
				return
			}
			signature := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
			answer = map[string]string{"token_type": "Bearer",
				"id_token": text + "." + encode(signature)}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client may be gone
	}))
	t.Cleanup(server.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--oidc-issuer", server.URL, "--oidc-audience", "shoal", "--oidc-client-id",
		"web", "--oidc-client-secret-file", secret, "--oidc-allow", "127.0.0.0/8"}
}

// atSignIn is a service with a person at its sign-in.
func atSignIn(t *testing.T, args ...string) (*person, *suite.Service, *single) {
	t.Helper()
	path := browser.Path(t)
	product := &single{data: t.TempDir(), args: append(append(suite.Fast(), "--chromium", "none",
		"--no-rate-limits"), args...)}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	return newPerson(t, path, s.Server), s, product
}

// opens opens a page of the service, and waits for its heading.
func (p *person) opens(place, heading string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.server + place))
	p.headed(heading)
}

func (p *person) headed(heading string) {
	p.t.Helper()
	p.sees(`document.querySelector("h1")?.innerText === "` + heading + `"`)
}

// types fills fields, by id, and sends the form.
func (p *person) types(entries ...[2]string) {
	p.t.Helper()
	for _, entry := range entries {
		p.do(chromedp.SendKeys(chromedp.CSS("#"+entry[0]), entry[1]))
	}
	p.clicks("form button")
}

// TestSignInPages follows a person who makes an account, forgets the password, and looks at the
// account. Each page is compared with its pictures.
func TestSignInPages(t *testing.T) {
	t.Parallel()
	box, address := openMailbox(t)
	p, s, product := atSignIn(t, "--smtp", address, "--smtp-tls", "none", "--smtp-from",
		"shoal@shop.example", "--public-url", "https://shoal.example")
	if err := s.Admin().Call(t.Context(), "PUT", "/api/admin/settings", nil,
		map[string]any{"signUpEnabled": true}, nil); err != nil {
		t.Fatal(err)
	}
	link := func() string {
		t.Helper()
		select {
		case text := <-box:
			found := regexp.MustCompile(`https://shoal\.example(/sign-in/\S+)`).FindStringSubmatch(text)
			if found == nil {
				t.Fatalf("no link: %s", text)
			}
			return strings.ReplaceAll(found[1], "=3D", "=")
		case <-time.After(suite.Patience):
			t.Fatal("no letter has come")
			return ""
		}
	}
	p.opens("/sign-up", "Make an account")
	p.shows("sign-up")
	p.types([2]string{"email", "ann@shop.example"})
	p.headed("Look into your mailbox")
	p.shows("sign-up-done")
	p.opens(link(), "Choose a password")
	p.shows("new-password")
	p.types([2]string{"next", "a long password"}, [2]string{"again", "another password"})
	p.sees(`document.querySelector(".problem")`)
	p.shows("new-password-problem")
	p.types([2]string{"next", "a long password"}, [2]string{"again", "a long password"})
	p.headed("The account is made")
	p.opens("/sign-in/recover", "Forgot the password?")
	p.shows("recover")
	p.opens("/sign-in", "Sign in")
	p.types([2]string{"email", "ann@shop.example"}, [2]string{"password", "a wrong password"})
	p.sees(`document.querySelector(".problem:not([hidden])")`)
	p.shows("sign-in")
	p.types([2]string{"password", "a long password"})
	p.sees(`location.pathname === "/portal"`)
	p.opens("/sign-in", "You are signed in")
	p.shows("signed-in")
	p.opens("/sign-in/password", "Change the password")
	p.shows("password")
	p.opens("/sign-in/passkeys", "Passkeys")
	p.shows("passkeys")
	p.opens("/sign-in/programs", "Programs that may call")
	p.shows("programs")
	product.Down(t)
}

// TestIssuerPages follows a person who signs in with an OpenID Connect issuer for the first time.
func TestIssuerPages(t *testing.T) {
	t.Parallel()
	p, _, product := atSignIn(t, openIssuer(t)...)
	p.opens("/portal/runs", "Sign in")
	p.shows("issuer")
	p.clicks("a.button")
	p.headed("Sign up")
	p.shows("stranger")
	asks[bool](p, `(document.querySelector("[name=agree]").click(), true)`)
	p.types([2]string{"firstname", "Ann"}, [2]string{"lastname", "Smith"})
	p.sees(`location.pathname === "/portal/runs" && document.querySelector(".balance strong")`)
	p.opens("/sign-in", "You are signed in")
	p.shows("issuer-signed-in")
	product.Down(t)
}

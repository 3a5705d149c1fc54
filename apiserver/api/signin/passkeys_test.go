package signin_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// key is a passkey of a software authenticator (Web Authentication, Level 3, sections 6 and 8.7).
// Its fields can make it misbehave.
type key struct {
	t       *testing.T
	private *ecdsa.PrivateKey
	id      []byte
	user    string
	count   uint32
	flags   byte   // of the authenticator data
	origin  string // "": the browser's
	party   string // "": as requested
}

const verified = 1<<0 | 1<<2 // user present and user verified

func newKey(t *testing.T) *key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key{t: t, private: private, id: []byte(rand.Text()), flags: verified}
}

func web(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// answers returns the client data and the authenticator data for a challenge.
func (k *key) answers(b *browser, kind string, asked map[string]any, more []byte) (client,
	data []byte) {
	origin, party := "http://"+b.host(), asked["rpId"].(string)
	if k.origin != "" {
		origin = k.origin
	}
	if k.party != "" {
		party = k.party
	}
	client = fmt.Appendf(nil, `{"type":%q,"challenge":%q,"origin":%q,"crossOrigin":false}`, kind,
		asked["challenge"], origin)
	sum := sha256.Sum256([]byte(party))
	data = append(sum[:], k.flags)
	data = binary.BigEndian.AppendUint32(data, k.count)
	return client, append(data, more...)
}

// attest creates the passkey.
func (k *key) attest(b *browser, asked map[string]any) map[string]any {
	k.user = asked["userId"].(string)
	public, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1,
		-2: k.private.X.FillBytes(make([]byte, 32)), -3: k.private.Y.FillBytes(make([]byte, 32))})
	if err != nil {
		k.t.Fatal(err)
	}
	made := binary.BigEndian.AppendUint16(make([]byte, 16), uint16(len(k.id)))
	flags := k.flags
	k.flags |= 1 << 6 // attested credential data included
	client, data := k.answers(b, "webauthn.create", asked, append(append(made, k.id...), public...))
	k.flags = flags
	attestation, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{},
		"authData": data})
	if err != nil {
		k.t.Fatal(err)
	}
	return map[string]any{"name": "phone", "id": web(k.id), "clientDataJSON": web(client),
		"attestationObject": web(attestation)}
}

// assert signs a challenge.
func (k *key) assert(b *browser, asked map[string]any) map[string]any {
	client, data := k.answers(b, "webauthn.get", asked, nil)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	if err != nil {
		k.t.Fatal(err)
	}
	return map[string]any{"id": web(k.id), "clientDataJSON": web(client), "userHandle": k.user,
		"authenticatorData": web(data), "signature": web(signature)}
}

// host is the server by name, because passkeys need one.
func (b *browser) host() string {
	at, err := url.Parse(b.s.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	return "localhost:" + at.Port()
}

// call calls the API as a page's script does.
func (b *browser) call(do string, body any, status int) (answer map[string]any) {
	b.t.Helper()
	method, path, _ := strings.Cut(do, " ")
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			b.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.host()+path,
		bytes.NewReader(sent))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := b.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_ = json.NewDecoder(response.Body).Decode(&answer) // it stays nil without a body
	if response.StatusCode != status {
		b.t.Errorf("%s: %d %v", do, response.StatusCode, answer)
	}
	return answer
}

const (
	askNew  = "POST /api/auth/passkeys/challenge"
	addNew  = "POST /api/auth/passkeys"
	askSign = "POST /api/auth/sign-in/passkey/challenge"
	signNow = "POST /api/auth/sign-in/passkey"
)

// signedIn is a browser in which ann has signed in.
func signedIn(t *testing.T, s *apitest.Server) *browser {
	b := newBrowser(t, s)
	b.call("POST /api/auth/sign-in", map[string]string{"email": email, "password": password}, 200)
	return b
}

func current(text string) map[string]string { return map[string]string{"currentPassword": text} }

// has adds a passkey.
func (b *browser) has(k *key) (id string) {
	b.t.Helper()
	made := b.call(addNew, k.attest(b, b.call(askNew, current(password), 200)), 200)
	return fmt.Sprint(made["id"])
}

// signs signs in with another browser of the same person.
func (b *browser) signs(k *key, status int) {
	b.t.Helper()
	b.call(signNow, k.assert(b, b.call(askSign, nil, 200)), status)
}

func TestPasskeysSignIn(t *testing.T) {
	s := start(t)
	mine, k := signedIn(t, s), newKey(t)
	if told := mine.call(askNew, current("wrong"), 400); fmt.Sprint(told["errors"]) !=
		"[map[code:invalid_request field:currentPassword message:currentPassword: is wrong]]" {
		t.Errorf("a wrong password: %v", told)
	}
	mine.has(k)
	list := mine.call("GET /api/auth/passkeys", nil, 200)["passkeys"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["name"] != "phone" ||
		list[0].(map[string]any)["usedAt"] != nil {
		t.Errorf("there are %v", list)
	}
	other := newBrowser(t, s)
	other.signs(k, 200)
	if who := other.call("GET /api/key/whoami", nil, 200); who["customerRef"] != "alice" {
		t.Errorf("signed in as %v", who)
	}
	other.wantsPasskey("phone")
	s.Run(t, apitest.Scenario{Name: "the trail", As: apitest.Admin,
		Do: "GET /api/admin/audit?customer=alice", Status: 200, Has: map[string]any{
			"items.0.action": "svc_passkeys_form", "items.0.changes.0.before.name": "phone",
			"items.1.action": "sign-in", "items.1.actor.operation": "svc_sign_in_by_passkey",
			"items.2.action": "svc_add_passkey", "items.2.changes.0.after.name": "phone"},
		Lacks: []string{"items.2.changes.0.after.publicKey"}})
	newBrowser(t, s).signs(k, 401)
	id := mine.has(newKey(t))
	for range 2 { // removing it again succeeds, too
		mine.call("DELETE /api/auth/passkeys/"+id, nil, 204)
	}
}

// wantsPasskey checks the pages, and removes a passkey with them.
func (b *browser) wantsPasskey(name string) {
	b.t.Helper()
	b.s.URL = "http://" + b.host()
	defer func() { b.s.URL = strings.Replace(b.s.URL, "localhost", "127.0.0.1", 1) }()
	b.wants(b.get("/sign-in", 200), `href="/sign-in/passkeys"`)
	page := b.get("/sign-in/passkeys", 200)
	b.wants(page, "<bdi>"+name+"</bdi>")
	_, id, _ := strings.Cut(page, `name="passkey" value="`)
	id, _, _ = strings.Cut(id, `"`)
	form := url.Values{"token": {"another"}, "passkey": {id}}
	b.wants(b.post("/sign-in/passkeys", form, 400), "The form was too old")
	form.Set("token", b.token(page))
	b.wants(b.post("/sign-in/passkeys", form, 200), "There are none yet")
}

// An answer signs nobody in if it has the wrong site, browser, time or key.
func TestPasskeysRefuse(t *testing.T) {
	s := start(t)
	mine, k := signedIn(t, s), newKey(t)
	mine.has(k)
	for name, spoil := range map[string]func(*key){
		"another site":      func(k *key) { k.origin = "http://evil.test" },
		"another party":     func(k *key) { k.party = "evil.test" },
		"nobody recognised": func(k *key) { k.flags = 1 },
		"another key":       func(k *key) { k.private = newKey(t).private },
		"another person":    func(k *key) { k.user = web([]byte("somebody else")) },
		"an unknown key":    func(k *key) { k.id = []byte("unknown") },
	} {
		spoilt := *k
		spoil(&spoilt)
		b := newBrowser(t, s)
		asked := b.call(askSign, nil, 200)
		if told := b.call(signNow, spoilt.assert(b, asked), 401); told["code"] != "unauthorized" {
			t.Errorf("%s: %v", name, told)
		}
		b.call("GET /api/key/whoami", nil, 401)
	}
	b := newBrowser(t, s)
	asked := b.call(askSign, nil, 200)
	answer := k.assert(b, asked)
	thief := newBrowser(t, s)
	thief.call(askSign, nil, 200) // it has its own cookie
	thief.call(signNow, answer, 401)
	newBrowser(t, s).call(signNow, answer, 401) // and a browser without any
	b.call(signNow, answer, 200)
	b.call(signNow, answer, 401) // a challenge is valid only once
	asked = b.call(askSign, nil, 200)
	s.Clock.Advance(5 * time.Minute)
	b.call(signNow, k.assert(b, asked), 401)
	for _, field := range []string{"id", "clientDataJSON", "authenticatorData", "signature",
		"userHandle"} {
		bad := k.assert(b, b.call(askSign, nil, 200))
		bad[field] = "not base64url!"
		if told := b.call(signNow, bad, 400); !strings.Contains(fmt.Sprint(told["errors"]), field) {
			t.Errorf("%s: %v", field, told)
		}
	}
	s.Run(t, apitest.Scenario{Name: "a name of numbers", Do: askSign, Status: 400,
		Code: "invalid_request"})
}

// Adding a passkey needs a session, the password, and a recent challenge.
func TestPasskeysAreAddedByTheirPeople(t *testing.T) {
	s := start(t)
	mine := signedIn(t, s)
	for name, spoil := range map[string]func(*key){
		"another site":      func(k *key) { k.origin = "http://evil.test" },
		"another party":     func(k *key) { k.party = "evil.test" },
		"nobody recognised": func(k *key) { k.flags = 1 },
	} {
		k := newKey(t)
		spoil(k)
		told := mine.call(addNew, k.attest(mine, mine.call(askNew, current(password), 200)), 400)
		if told["code"] != "invalid_request" {
			t.Errorf("%s: %v", name, told)
		}
	}
	k := newKey(t)
	asked := mine.call(askNew, current(password), 200)
	nameless := k.attest(mine, asked)
	nameless["name"] = " "
	mine.call(addNew, nameless, 400)
	mine.call(addNew, k.attest(mine, map[string]any{"rpId": "localhost", "userId": k.user,
		"challenge": mine.call(askSign, nil, 200)["challenge"]}), 400) // a challenge to sign in
	newBrowser(t, s).call(addNew, k.attest(mine, asked), 401)
	mine.call(addNew, k.attest(mine, asked), 200)
	mine.call(addNew, k.attest(mine, asked), 409)
	asked = mine.call(askNew, current(password), 200)
	if known := asked["excludeCredentials"].([]any); len(known) != 1 || known[0] != web(k.id) {
		t.Errorf("known are %v", known)
	}
	mine.call("POST /api/auth/password", map[string]string{"currentPassword": password,
		"newPassword": "another horse battery"}, 204)
	mine.call(addNew, newKey(t).attest(mine, asked), 400) // the password has changed since
	newBrowser(t, s).signs(k, 200)                        // the passkey stays
	s.Run(t, apitest.Scenario{Name: "a token has none", As: apitest.SignIn, Do: askNew,
		Body: `{"currentPassword":"x"}`, Header: map[string]string{}, Status: 400})
}

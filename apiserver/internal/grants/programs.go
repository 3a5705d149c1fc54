package grants

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/controlplane/client"
)

// Bounds on a registered program. Within them, an id has at most MaxProgramID bytes.
const (
	maxName      = 64 // characters
	maxRedirects = 5
	maxRedirect  = 255 // bytes
	MaxProgramID = 4_096
	// programLife is how long a program may ask for grants. Its existing grants continue.
	programLife = 400 * 24 * time.Hour
)

const programStart = "svc_client_"

// Program is a registered program (RFC 7591). It is public: it has no secret, and chooses its own
// name. Its id holds all of this, signed by the service, which stores nothing. So a flood of
// registrations takes no space, and an id expires on its own.
type Program struct {
	Name       string   `json:"n"`
	Redirects  []string `json:"r"`
	Registered int64    `json:"t"` // Unix seconds
	Nonce      string   `json:"x"` // distinguishes programs with equal data
}

// Register makes the id of a program. Refusals: invalid_redirect_uri, invalid_client_metadata.
func (s *Service) Register(name string, redirects []string) (string, *Program, error) {
	if name = strings.TrimSpace(name); name == "" {
		name = "a program without a name"
	}
	unseen := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName ||
		strings.ContainsFunc(name, unseen) {
		return "", nil, refuse("invalid_client_metadata", "client_name has at most %d printable "+
			"characters", maxName)
	}
	if len(redirects) == 0 || len(redirects) > maxRedirects {
		return "", nil, refuse("invalid_redirect_uri", "redirect_uris has 1 to %d addresses",
			maxRedirects)
	}
	for _, redirect := range redirects {
		if !mayLeadTo(redirect) {
			return "", nil, refuse("invalid_redirect_uri", "want https://, or http:// on the "+
				"loopback, without user and fragment, in at most %d bytes", maxRedirect)
		}
	}
	p := &Program{Name: name, Redirects: redirects, Registered: s.Clock.Now().Unix(),
		Nonce: rand.Text()[:10]}
	body, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return programStart + text + "." + s.sign(text), p, nil
}

func (s *Service) sign(text string) string {
	sum := hmac.New(sha256.New, s.Key)
	_, _ = sum.Write([]byte("program " + text)) // never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// program is the program of an id; nil: this service did not make it, or it is too old.
func (s *Service) program(id string) *Program {
	rest, is := strings.CutPrefix(id, programStart)
	text, sum, signed := strings.Cut(rest, ".")
	if !is || !signed || len(id) > MaxProgramID || !hmac.Equal([]byte(sum), []byte(s.sign(text))) {
		return nil
	}
	var p Program
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(body, &p) != nil ||
		!s.Clock.Now().Before(time.Unix(p.Registered, 0).Add(programLife)) {
		return nil
	}
	return &p
}

// hash is the hash of a text, which is all that is stored.
func hash(text string) client.Hash { return sha256.Sum256([]byte(text)) }

// mayLeadTo says whether a code may be sent to an address: over https, or to the person's own
// machine (RFC 8252, section 7.3).
func mayLeadTo(text string) bool {
	at, err := url.Parse(text)
	plain := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	if err != nil || len(text) > maxRedirect || strings.ContainsFunc(text, plain) ||
		at.Hostname() == "" || at.User != nil || strings.Contains(text, "#") {
		return false
	}
	return at.Scheme == "https" || at.Scheme == "http" && isLoopback(at.Hostname())
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// allows says whether a program has registered exactly this address. Loopback ports may differ,
// since programs choose a new one at each start (RFC 8252, section 7.3).
func (p *Program) allows(redirect string) bool {
	if !mayLeadTo(redirect) {
		return false
	}
	host, rest, loops := onLoopback(redirect)
	return slices.ContainsFunc(p.Redirects, func(known string) bool {
		knownHost, knownRest, knownLoops := onLoopback(known)
		return known == redirect ||
			loops && knownLoops && host == knownHost && rest == knownRest
	})
}

// onLoopback splits an http address, and drops its port.
func onLoopback(text string) (host, rest string, loops bool) {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" {
		return "", "", false
	}
	rest, loops = strings.CutPrefix(text, "http://"+at.Host)
	return at.Hostname(), rest, loops
}

// source is an address as a CSP 3 source: scheme, host and port. CSP has no form for IPv6
// addresses.
func source(redirect string) string {
	at, err := url.Parse(redirect)
	if err != nil || strings.ContainsAny(at.Host, ";, '[") {
		return "http:"
	}
	return at.Scheme + "://" + at.Host
}

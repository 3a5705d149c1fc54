// Package portal serves the web portal: one page with its script, its style and its icon, all
// embedded in the program. It owns how they are sent and what the page may load. It knows no
// customers: the page calls the API like any other program, and the API enforces all rules.
package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// Path is the address of the portal. Paths below it are places within its page.
const Path = "/portal"

// assetsPath is the path of assets. A name there changes whenever its content does.
const assetsPath = Path + "/assets/"

//go:embed assets
var files embed.FS

// page is embedded, so it always parses.
var page = template.Must(template.ParseFS(files, "assets/index.html"))

// asset is a file in the forms in which it is sent.
type asset struct {
	contentType string
	plain       []byte
	gzip        func() []byte // compressed on first use
}

// Portal serves browsers. It is safe for concurrent use.
type Portal struct {
	assets        map[string]asset // by their path
	script, style string           // paths
	icon          string
	begins        []string // paths of the parts that the script imports statically
	payments      string   // "yes" or "no"
	signedIn      func(rc *fasthttp.RequestCtx) bool
	follow        func(rc *fasthttp.RequestCtx) uint64
}

// New makes a portal. signedIn reports whether a request has a session cookie; the API checks
// whether the session is valid. follow returns the index of the state from which the page's stream
// of events goes on, or 0. payments says whether there is a payment provider.
func New(signedIn func(rc *fasthttp.RequestCtx) bool, follow func(rc *fasthttp.RequestCtx) uint64,
	payments bool) (*Portal, error) {
	p := &Portal{assets: map[string]asset{}, signedIn: signedIn, follow: follow, payments: "no"}
	if payments {
		p.payments = "yes"
	}
	for name, at := range map[string]*string{"app.js": &p.script, "app.css": &p.style,
		"icon.svg": &p.icon} {
		data, err := files.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		stem, kind, _ := strings.Cut(name, ".")
		*at = assetsPath + stem + "-" + hex.EncodeToString(sum[:8]) + "." + kind
		p.keep(*at, data)
	}
	// dynamically imported parts of the script, under the names that it knows
	parts, err := fs.Glob(files, "assets/*-*.js")
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		data, err := files.ReadFile(part)
		if err != nil {
			return nil, err
		}
		p.keep(Path+"/"+part, data)
	}
	p.begins = p.before(p.script)
	return p, nil
}

// imports matches the static imports of a script. Dynamic imports are calls.
var imports = regexp.MustCompile(`(?:from|import)"\./([^"]+)"`)

// before lists the parts that a script imports statically, directly or not, each once.
func (p *Portal) before(script string) []string {
	var all []string
	for wanted := []string{script}; len(wanted) > 0; wanted = wanted[1:] {
		for _, name := range imports.FindAllSubmatch(p.assets[wanted[0]].plain, -1) {
			if part := assetsPath + string(name[1]); !slices.Contains(all, part) {
				all = append(all, part)
				wanted = append(wanted, part)
			}
		}
	}
	return all
}

// contentTypes maps the extension of an asset to its media type.
var contentTypes = map[string]string{".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// keep adds an asset at a path.
func (p *Portal) keep(at string, data []byte) {
	p.assets[at] = asset{contentType: contentTypes[path.Ext(at)], plain: data,
		gzip: sync.OnceValue(func() []byte { return compress(data) })}
}

func compress(data []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)                                    // writing to a buffer cannot fail
	_ = w.Close()
	return out.Bytes()
}

// Serve answers a request for the portal. It returns false for other requests.
func (p *Portal) Serve(rc *fasthttp.RequestCtx) bool {
	at := string(rc.Path())
	below := strings.HasPrefix(at, Path+"/")
	if at != "/" && at != Path && !below {
		return false
	}
	protect(&rc.Response.Header)
	switch file, known := p.assets[at]; {
	case !rc.IsGet() && !rc.IsHead():
		rc.Response.Header.Set("Allow", "GET, HEAD")
		rc.SetStatusCode(http.StatusMethodNotAllowed)
	case known:
		p.send(rc, file)
	case strings.HasPrefix(at, assetsPath):
		rc.SetStatusCode(http.StatusNotFound)
	case at == "/":
		lead(rc, Path)
	case !p.signedIn(rc):
		lead(rc, "/sign-in?"+url.Values{"next": {string(rc.RequestURI())}}.Encode())
	default:
		p.show(rc)
	}
	return true
}

// lead redirects a browser.
func lead(rc *fasthttp.RequestCtx, to string) {
	rc.Response.Header.Set("Cache-Control", "no-store")
	rc.Response.Header.Set("Location", to)
	rc.SetStatusCode(http.StatusSeeOther)
}

// protect sets the headers of every answer.
func protect(h *fasthttp.ResponseHeader) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding, Cookie")
}

// send sends an asset. Its name changes with its content, so browsers may cache it for good.
func (p *Portal) send(rc *fasthttp.RequestCtx, file asset) {
	rc.SetContentType(file.contentType)
	rc.Response.Header.Set("Cache-Control", "public, max-age=31536000, immutable")
	body := file.plain
	if rc.Request.Header.HasAcceptEncoding("gzip") {
		body = file.gzip()
		rc.Response.Header.Set("Content-Encoding", "gzip")
	}
	rc.SetBody(body)
}

// show sends the page. It lists all parts of the script, so that they load in parallel, after the
// head is drawn. Its nonce is valid for this answer only. The page accepts nothing but the named
// scripts and the style, and scripts cannot write HTML into it (Trusted Types).
func (p *Portal) show(rc *fasthttp.RequestCtx) {
	nonce := rand.Text()
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]any{"Nonce": nonce, "Script": p.script,
		"Begins": p.begins, "Style": p.style, "Icon": p.icon, "Payments": p.payments,
		"Index": p.follow(rc)}); err != nil {
		panic(err) // the page is embedded, and its values are plain
	}
	h := &rc.Response.Header
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; "+
		"style-src 'nonce-"+nonce+"'; img-src 'self'; connect-src 'self'; form-action 'self'; "+
		"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "+
		"trusted-types 'none'")
	h.Set("Cache-Control", "no-store")
	rc.SetContentType("text/html; charset=utf-8")
	rc.SetBody(out.Bytes())
}

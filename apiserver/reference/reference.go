// Package reference serves the API reference for people: a page that shows what /v3/api-docs
// describes. It owns how the page and its renderer are sent, and what the page may load. The
// renderer is Redoc 2.5.4 from npm, under the MIT license (third_party/redoc). Our copy lacks the
// address of a logo, which it would request from another server. It is embedded, and the page
// contacts only this server.
package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// Path is the address of the page, below that of the description. Its scripts are below it.
const Path = "/v3/api-docs/reference"

//go:embed third_party/redoc/redoc.standalone.js.gz
var renderer []byte

//go:embed start.js
var start []byte

//go:embed page.html
var source string

// page is embedded, so it always parses.
var page = template.Must(template.New("page").Parse(source))

// Reference serves browsers. It is safe for concurrent use.
type Reference struct {
	scripts         map[string][]byte // by path, compressed with gzip
	renderer, start string            // paths
}

// New makes a reference.
func New() (*Reference, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(start); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	r := &Reference{renderer: named("redoc", renderer), start: named("start", start)}
	r.scripts = map[string][]byte{r.renderer: renderer, r.start: packed.Bytes()}
	return r, nil
}

// named is the path of a script. It changes with the script's content.
func named(stem string, data []byte) string {
	sum := sha256.Sum256(data)
	return Path + "/" + stem + "-" + hex.EncodeToString(sum[:8]) + ".js"
}

// Serve answers a request for the reference. It returns false for other requests.
func (r *Reference) Serve(rc *fasthttp.RequestCtx) bool {
	path := string(rc.Path())
	if path != Path && !strings.HasPrefix(path, Path+"/") {
		return false
	}
	h := &rc.Response.Header
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	switch script, known := r.scripts[path]; {
	case !rc.IsGet() && !rc.IsHead():
		h.Set("Allow", "GET, HEAD")
		rc.SetStatusCode(http.StatusMethodNotAllowed)
	case known:
		send(rc, script)
	case path == Path:
		r.show(rc)
	default:
		rc.SetStatusCode(http.StatusNotFound)
	}
	return true
}

// send sends a script. Its name changes with its content, so browsers may cache it for good.
func send(rc *fasthttp.RequestCtx, packed []byte) {
	rc.SetContentType("text/javascript; charset=utf-8")
	rc.Response.Header.Set("Cache-Control", "public, max-age=31536000, immutable")
	if rc.Request.Header.HasAcceptEncoding("gzip") {
		rc.Response.Header.Set("Content-Encoding", "gzip")
		rc.SetBody(packed)
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		_, err = io.Copy(rc.Response.BodyWriter(), plain)
	}
	if err != nil {
		panic(err) // the script is embedded
	}
}

// early has the hashes of two styles that the renderer creates before it knows the nonce: an empty
// one, and that of its scroll bars.
const early = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' " +
	"'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"

// show sends the page. Its nonce is valid for this answer only, and no other script or style is
// accepted. blob: is for the renderer's search worker, which it creates from its own text.
func (r *Reference) show(rc *fasthttp.RequestCtx) {
	nonce := rand.Text()
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]string{"Nonce": nonce, "Renderer": r.renderer,
		"Start": r.start}); err != nil {
		panic(err) // the page is embedded, and its values are texts
	}
	h := &rc.Response.Header
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; "+
		"style-src 'nonce-"+nonce+"' "+early+"; img-src data:; connect-src 'self'; worker-src blob:; "+
		"form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	rc.SetContentType("text/html; charset=utf-8")
	rc.SetBody(out.Bytes())
}

// Package reference serves the reference of the API for people: a page that shows what
// /v3/api-docs describes. It owns how the page and its renderer are sent, and what the page may
// load. The renderer is Redoc 2.5.4 as its package on npm has it, under the MIT license
// (third_party/redoc). Ours lacks the address of a logo, which it would ask another server for. It
// is a part of the program, and the page asks nobody but this server.
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

// Path is where the page is, beside what it shows. What lies below it are its scripts.
const Path = "/v3/api-docs/reference"

//go:embed third_party/redoc/redoc.standalone.js.gz
var renderer []byte

//go:embed start.js
var start []byte

//go:embed page.html
var source string

// page is a part of the program, and holds.
var page = template.Must(template.New("page").Parse(source))

// Reference answers browsers. It is safe for concurrent use.
type Reference struct {
	scripts         map[string][]byte // by their path, packed by gzip
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

// named is the path of a script, which changes with what it is.
func named(stem string, data []byte) string {
	sum := sha256.Sum256(data)
	return Path + "/" + stem + "-" + hex.EncodeToString(sum[:8]) + ".js"
}

// Serve answers a request for the reference. Others are not its own: it says so, and leaves them.
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

// send sends a script. Its name changes when it does, so that a browser keeps it.
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
		panic(err) // a part of the program
	}
}

// early are the hashes of two styles that the renderer makes before it is told the nonce. One is
// empty, the other that of its scroll bars.
const early = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' " +
	"'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"

// show sends the page. Its nonce is good for this answer alone: no other script or style counts.
// The renderer searches in a worker that it makes of its own text, which is what blob: is for.
func (r *Reference) show(rc *fasthttp.RequestCtx) {
	nonce := rand.Text()
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]string{"Nonce": nonce, "Renderer": r.renderer,
		"Start": r.start}); err != nil {
		panic(err) // the page is a part of the program, and its values are texts
	}
	h := &rc.Response.Header
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; "+
		"style-src 'nonce-"+nonce+"' "+early+"; img-src data:; connect-src 'self'; worker-src blob:; "+
		"form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	rc.SetContentType("text/html; charset=utf-8")
	rc.SetBody(out.Bytes())
}

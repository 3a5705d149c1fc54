package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/wake"
)

// Ask says what to load.
type Ask struct {
	URL      string    // canonical
	Customer string    // customers take turns
	Deadline time.Time // for the whole load
	Proxy    *egress.Proxy
	// BeforeHop is called before the page itself moves to another address, by a redirect or a
	// script. Its error ends the load.
	BeforeHop func(ctx context.Context, url string) error
	MaxHops   int
	// More loads more content into the page, Max loads in all: by clicking the element that Click
	// selects, or by scrolling to the end.
	More  bool
	Click string
	Max   int
}

// Page is what was loaded. It is filled as far as possible even with an error.
type Page struct {
	Status      int               // of the document; 0 when none came
	Final       string            // its address, canonical
	Header      map[string]string // of the document's response, names in lower case
	ContentType string
	// UTF-8: a document as its scripts left it; anything else as received
	Body     []byte
	Received int64 // bytes, over all requests of the page
	Hops     int
	Loads    int // including the first
}

// ErrBusy says that the browser, or the customer's share of it, is full. Nothing was requested.
// Callers that return within ComeAgain keep their turn.
var ErrBusy = errors.New("chromium: as many pages are loaded as may be")

// ComeAgain is how long a refused caller's turn is kept.
const ComeAgain = 16 * time.Second

// Load loads a page. Its errors are *fault.Error with a page code, BeforeHop's, ErrBusy, or the
// context's.
func (b *Browser) Load(ctx context.Context, ask Ask) (*Page, error) {
	got := &Page{Final: ask.URL}
	ctx, cancel := context.WithDeadline(ctx, ask.Deadline)
	defer cancel()
	ask.Deadline, _ = ctx.Deadline() // the caller's deadline may be earlier
	if !b.places.Enter(ask.Customer, time.Now()) {
		return got, ErrBusy
	}
	defer func() { b.places.Leave(ask.Customer, time.Now()) }()
	p, err := b.acquireProcess(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = ended(ctx)
		}
		return got, err
	}
	g, err := openGate(ctx, &b.config, ask.Customer, ask.Proxy, b.config.Requests,
		b.config.Bytes)
	if err != nil {
		b.give(p)
		return got, fault.Wrap(fault.Unavailable, err, "The browser has no way out.")
	}
	pageCtx, closePage := chromedp.NewContext(p.ctx,
		chromedp.WithNewBrowserContext(func(c *target.CreateBrowserContextParams) {
			c.ProxyServer, c.ProxyBypassList = "http://"+g.address(), "<-loopback>"
		}))
	defer func() {
		g.close()
		// closing a busy page takes time; Close waits for it
		go b.closePage(p, closePage)
	}()
	run, stop := context.WithDeadline(pageCtx, ask.Deadline)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	v := &visit{ask: &ask, reader: b.config.Reader, got: got, gate: g, body: b.config.Body,
		stop:    stop,
		changed: wake.NewSignal(), dialogs: make(chan struct{}, 1),
		stages: map[cdp.LoaderID]*stage{},
		paused: make(chan *fetch.EventRequestPaused, b.config.Requests+1),
		left:   b.config.Requests, spent: make(chan struct{})}
	err = v.run(run)
	got.Received = g.received.Load()
	return got, v.verdict(ctx, p, err)
}

// closePage closes a page and gives back its process. It kills a process that does not close the
// page.
func (b *Browser) closePage(p *process, closePage func()) {
	late := time.AfterFunc(closeTime, func() { b.destroy(p, "a page does not close") })
	closePage()
	late.Stop()
	b.give(p)
}

func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.PageTimeout, ctx.Err(), "The page was not loaded in time.")
	}
	return ctx.Err()
}

// verdict turns the error of a load into a page's error.
func (v *visit) verdict(ctx context.Context, p *process, err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	var coded *fault.Error
	switch {
	case err == nil:
		return nil
	case v.refused != nil: // by BeforeHop
		return v.refused
	case v.crashed:
		return fault.New(fault.PageTooLarge, "The page used too much memory, or made the "+
			"browser crash.")
	case errors.As(err, &coded):
		return coded
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.PageTimeout, err, "The page was not loaded in time.")
	case p.ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, err, "The browser ended.")
	}
	return fault.Wrap(fault.PageProtocol, err, "The browser cannot load the page.")
}

// run loads the page and reads it.
func (v *visit) run(ctx context.Context) error {
	hear := func(event any) {
		record := func() []byte {
			text, _ := json.Marshal(event) // what cannot be written is not kept
			return text
		}
		v.guard(record, func() { v.hear(event) })
	}
	if err := chromedp.Listen(ctx, hear); err != nil {
		return err
	}
	v.mu.Lock()
	v.frame = cdp.FrameID(chromedp.FromContext(ctx).Target.TargetID)
	v.mu.Unlock()
	answering, stop := context.WithCancel(ctx)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		v.guard(nil, func() { v.answer(answering) })
	}()
	defer func() { stop(); <-answered }()
	if err := v.prepare(ctx); err != nil {
		return err
	}
	went, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: v.ask.URL})
	if err != nil {
		return err
	}
	if err := v.notReached(&went); err != nil {
		return err
	}
	if err := v.awaitQuiet(ctx); err != nil {
		return err
	}
	v.got.Loads = 1
	if v.ask.More {
		if err := v.loadMore(ctx); err != nil {
			return err
		}
	}
	return v.read(ctx)
}

// prepare intercepts requests for documents, and for the kinds that are left out.
func (v *visit) prepare(ctx context.Context) error {
	patterns := []*fetch.RequestPattern{}
	for _, kind := range []network.ResourceType{network.ResourceTypeDocument,
		network.ResourceTypeImage,
		network.ResourceTypeMedia, network.ResourceTypeFont} {
		patterns = append(patterns, &fetch.RequestPattern{ResourceType: kind})
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, page.SetLifecycleEventsEnabled,
		page.SetLifecycleEventsEnabledParams{Enabled: true}); err != nil {
		return err
	}
	_, err := chromedp.Call(ctx, fetch.Enable, fetch.EnableParams{Patterns: patterns})
	return err
}

// notReached returns why a navigation failed, or nil.
func (v *visit) notReached(went *page.NavigateResult) error {
	if went.IsDownload {
		return fault.New(fault.PageNotHTML, "The address is a file to be kept, no page.")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if reason := v.gate.reason(v.got.Final); reason != nil &&
		(went.ErrorText != "" || v.got.Status == 0) {
		return reason
	}
	switch text := went.ErrorText; {
	case text == "":
		return nil
	case strings.Contains(text, "ERR_CERT_"), strings.Contains(text, "ERR_SSL_"),
		strings.Contains(text, "ERR_BAD_SSL"):
		return fault.New(fault.PageTLS, "The host's TLS or certificate is not valid (%s).", text)
	case strings.Contains(text, "ERR_TOO_MANY_REDIRECTS"):
		return fault.New(fault.PageRedirects, "The page leads through too many redirects.")
	case strings.Contains(text, "ERR_ABORTED"):
		return fault.New(fault.PageNotHTML, "The address is no page.")
	case strings.Contains(text, "ERR_INVALID_RESPONSE"),
		strings.Contains(text, "ERR_RESPONSE_HEADERS"),
		strings.Contains(text, "ERR_CONTENT_"), strings.Contains(text, "ERR_INCOMPLETE"):
		return fault.New(fault.PageProtocol, "The answer is not valid HTTP (%s).", text)
	default:
		return fault.New(fault.PageConnect, "The page cannot be reached (%s).", text)
	}
}

// brokeOff returns the error for a document whose body did not arrive whole. Browsers show a
// partial page, but only a page that was read whole is delivered (decision 16).
func (v *visit) brokeOff(text string) error {
	select {
	case <-v.gate.over: // the gate cut it off
		return errTooMuch()
	default:
	}
	if strings.Contains(text, "ERR_CONTENT_DECODING") {
		return fault.New(fault.PageDecompression, "The body cannot be decompressed (%s).", text)
	}
	return fault.New(fault.PageProtocol, "The answer broke off (%s).", text)
}

// awaitQuiet waits until the page is loaded and makes no more requests, or its time is over.
func (v *visit) awaitQuiet(ctx context.Context) error {
	latest := time.NewTimer(time.Until(v.ask.Deadline) - marginBefore)
	defer latest.Stop()
	var enough <-chan time.Time
	for {
		v.mu.Lock()
		refused, broken, now := v.refused, v.broken, v.nowLocked()
		cut := ""
		if !v.leaving {
			cut = v.cut
		}
		v.mu.Unlock()
		switch {
		case refused != nil:
			return refused
		case broken:
			return v.notReached(&page.NavigateResult{ErrorText: "the page went elsewhere"})
		case cut != "":
			return v.brokeOff(cut)
		case now.loaded && now.idle:
			return nil
		case now.loaded && enough == nil:
			enough = time.After(settleAfter)
		case !now.loaded:
			enough = nil // the page moved to another address
		}
		select {
		case <-v.changed:
		case <-v.gate.over:
			return errTooMuch()
		case <-enough:
			return nil
		case <-latest.C:
			if !now.parsed {
				return fault.New(fault.PageTimeout, "The page was not loaded in time.")
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads the document as it stands, or the body if it is not a document.
func (v *visit) read(ctx context.Context) error {
	v.mu.Lock()
	document, mime := v.document, v.got.ContentType
	v.mu.Unlock()
	if !isDocument(mime) && document != "" {
		raw, err := chromedp.Call(ctx, network.GetResponseBody,
			network.GetResponseBodyParams{RequestID: document})
		if err == nil {
			if int64(len(raw.Body)) > v.body {
				return fault.New(fault.PageTooLarge, "The page is larger than %d bytes.", v.body)
			}
			v.keepBody(raw.Body, mime)
			return nil
		}
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[*string](readScript(v.body)))
	switch {
	case err != nil:
		return err
	case text == nil || int64(len(*text)) > v.body:
		return fault.New(fault.PageTooLarge, "The page is larger than %d bytes.", v.body)
	}
	v.keepBody([]byte(*text), "text/html; charset=utf-8")
	return nil
}

func (v *visit) keepBody(body []byte, contentType string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.got.Body, v.got.ContentType = body, contentType
}

// isDocument says whether browsers show a type as a document.
func isDocument(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return mime == "" || mime == "text/html" || mime == "application/xhtml+xml"
}

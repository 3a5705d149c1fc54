package chromium

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
)

// visit is one page being loaded.
type visit struct {
	ask     *Ask
	got     *Page
	gate    *gate
	reader  *reading.Guard
	body    int64 // bytes at most
	changed chan struct{}
	paused  chan *fetch.EventRequestPaused
	dialogs chan struct{}
	spent   chan struct{} // closed when no further request may be made
	stop    func()        // ends what is under way

	mu       sync.Mutex  // guards what follows, and got while the page loads
	frame    cdp.FrameID // the page itself
	document network.RequestID
	asked    int    // requests for the page itself
	left     int    // requests that may be made
	refused  error  // by BeforeHop, or for too many hops
	leaving  bool   // another document has been asked for
	broken   bool   // what stands there is the browser's own page about a failure
	cut      string // why the document's body broke off, in the browser's words; "": it has not
	crashed  bool   // the page's own process has ended
	loader   cdp.LoaderID
	stages   map[cdp.LoaderID]*stage // of every document that the page has been
	over     bool                    // what is still heard comes too late
}

// stage is how far a document has come.
type stage struct{ parsed, loaded, idle bool }

// stageLocked is that of a document.
func (v *visit) stageLocked(of cdp.LoaderID) *stage {
	s := v.stages[of]
	if s == nil {
		s = &stage{}
		v.stages[of] = s
	}
	return s
}

// nowLocked is how far the page has come.
func (v *visit) nowLocked() stage {
	if v.leaving || v.loader == "" {
		return stage{}
	}
	return *v.stageLocked(v.loader)
}

// guard runs what reads the browser's messages beside the load: a panic is the page's end.
func (v *visit) guard(read func()) {
	if panicked := v.reader.Run(reading.Page{URL: v.ask.URL}, read); panicked != nil {
		v.mu.Lock()
		v.refused = panicked
		v.mu.Unlock()
		v.stop()
	}
}

// hear is called with every event, in order. It must not wait.
func (v *visit) hear(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return
	}
	switch e := event.(type) {
	case *fetch.EventRequestPaused:
		select {
		case v.paused <- e:
		default: // more than a page may ask for: it waits for ever
		}
		return
	case *inspector.EventTargetCrashed:
		v.crashed = true
		v.stop() // nothing is answered any more
		return
	case *page.EventJavascriptDialogOpening:
		select {
		case v.dialogs <- struct{}{}:
		default: // one is enough
		}
		return
	case *network.EventRequestWillBeSentExtraInfo: // it has gone out
		if v.left--; v.left == 0 {
			v.gate.refuseMore()
			close(v.spent)
		}
		return
	case *network.EventResponseReceived:
		if e.Type != network.ResourceTypeDocument || e.FrameID != v.frame {
			return
		}
		v.receiveLocked(e)
	case *network.EventLoadingFailed:
		if e.RequestID != v.document || e.Canceled { // cancelled: the page goes elsewhere
			return
		}
		v.cut = e.ErrorText
	case *page.EventLifecycleEvent:
		if e.FrameID != v.frame {
			return
		}
		switch s := v.stageLocked(e.LoaderID); e.Name {
		case "DOMContentLoaded":
			s.parsed = true
		case "load":
			s.loaded = true
		case "networkIdle":
			s.idle = true
		}
	case *page.EventFrameNavigated:
		if e.Frame.ID != v.frame || e.Frame.URL == "about:blank" {
			return
		}
		v.loader, v.leaving = e.Frame.LoaderID, false
		v.broken = strings.HasPrefix(e.Frame.URL, "chrome-error:")
	default:
		return
	}
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// receiveLocked notes the answer with the page's document.
func (v *visit) receiveLocked(e *network.EventResponseReceived) {
	r := e.Response
	v.document, v.cut, v.got.Status = e.RequestID, "", int(r.Status)
	v.got.ContentType = r.MimeType
	if r.Charset != "" {
		v.got.ContentType += "; charset=utf-8" // the browser has decoded it
	}
	if final, err := address.Canonical(r.URL); err == nil {
		v.got.Final = final
	}
	v.got.Header = make(map[string]string, len(r.Headers))
	for name, value := range r.Headers {
		v.got.Header[strings.ToLower(name)] = fmt.Sprint(value)
	}
}

// answer decides on the requests that ask first, and dismisses dialogs, for which the page would
// wait. Once the page has made as many requests as it may, all others ask, and are refused. The
// connections that it has could carry any number of them.
func (v *visit) answer(ctx context.Context) {
	spent := v.spent
	for {
		select {
		case <-ctx.Done():
			return
		case <-spent:
			spent = nil
			// one that fails is of a page that has gone
			_, _ = chromedp.Call(ctx, fetch.Enable, fetch.EnableParams{
				Patterns: []*fetch.RequestPattern{{URLPattern: "*"}}})
		case <-v.dialogs:
			// it may be gone
			_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog,
				page.HandleJavaScriptDialogParams{})
		case e := <-v.paused:
			refusal := network.ErrorReasonBlockedByClient
			allowed := e.ResourceType == network.ResourceTypeDocument
			switch {
			case allowed && e.FrameID == v.frame:
				allowed = v.hop(ctx, e.Request.URL)
				refusal = network.ErrorReasonAborted
			case v.isSpent():
				allowed = false
			}
			// A request whose answer fails is one of a page that has gone.
			if allowed {
				_, _ = chromedp.Call(ctx, fetch.ContinueRequest,
					fetch.ContinueRequestParams{RequestID: e.RequestID})
			} else {
				_, _ = chromedp.Call(ctx, fetch.FailRequest,
					fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: refusal})
			}
		}
	}
}

// isSpent says that no further request may be made.
func (v *visit) isSpent() bool {
	select {
	case <-v.spent:
		return true
	default:
		return false
	}
}

// hop says whether the page itself may be asked for at an address.
func (v *visit) hop(ctx context.Context, url string) bool {
	v.mu.Lock()
	v.asked++
	first, hops := v.asked == 1, v.asked-1
	v.mu.Unlock()
	if first {
		return true
	}
	to, err := address.Canonical(url)
	switch {
	case err != nil:
		err = fault.Wrap(fault.PageInvalidURL, err, "The page leads to an invalid address.")
	case hops > v.ask.MaxHops:
		err = fault.New(fault.PageRedirects, "The page leads through more than %d redirects.",
			v.ask.MaxHops)
	case v.isSpent():
		err = errTooMany()
	case v.ask.BeforeHop != nil:
		err = v.ask.BeforeHop(ctx, to)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		if v.refused == nil {
			v.refused = err
		}
		select {
		case v.changed <- struct{}{}:
		default:
		}
		return false
	}
	v.got.Final, v.got.Hops, v.leaving = to, hops, true
	return true
}

// loadMore clicks or scrolls until nothing new comes, the bound is reached or time is short.
func (v *visit) loadMore(ctx context.Context) error {
	size, err := v.measure(ctx)
	if err != nil {
		return err
	}
	for v.got.Loads < v.ask.Max && time.Until(v.ask.Deadline) > moreWithin+marginBefore {
		more, err := chromedp.Run(ctx, chromedp.Evaluate[bool](moreScript(v.ask.Click)))
		if err != nil || !more {
			return err
		}
		grown, err := v.grows(ctx, size)
		if err != nil {
			return err
		}
		if grown <= size {
			return nil
		}
		size = grown
		v.got.Loads++
	}
	return nil
}

// growEvery is how often a page is looked at for what a click or a scroll has loaded.
const growEvery = 100 * time.Millisecond

// grows waits until the page is larger, and then has stopped growing for a look, or its time for
// that is over.
func (v *visit) grows(ctx context.Context, from int) (int, error) {
	limit := time.NewTimer(moreWithin)
	defer limit.Stop()
	look := time.NewTicker(growEvery)
	defer look.Stop()
	last := from
	for {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-limit.C:
			return last, nil
		case <-look.C:
		}
		now, err := v.measure(ctx)
		if err != nil {
			return last, err
		}
		if now > from && now == last {
			return now, nil
		}
		last = now
	}
}

// measure counts the page's elements and the characters of its text.
func (v *visit) measure(ctx context.Context) (int, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[int](
		`document.getElementsByTagName("*").length + (document.body ? document.body.textContent.length : 0)`))
}

// moreScript clicks on what a selector finds, or scrolls to the end. It is false when there is
// nothing to click on, or the browser cannot read the selector.
func moreScript(click string) string {
	if click == "" {
		return `(() => {window.scrollTo(0, document.documentElement.scrollHeight); return true})()`
	}
	selector, _ := json.Marshal(click) // text always marshals
	return `(() => {let e; try {e = document.querySelector(` + string(selector) + `)} catch {return false}
		if (!e || e.disabled || e.getClientRects().length === 0) return false;
		e.scrollIntoView(); e.click(); return true})()`
}

// readScript is the document's text, or null when it is too long.
func readScript(most int64) string {
	return fmt.Sprintf(`(() => {const e = document.documentElement; if (!e) return "";
		const text = "<!DOCTYPE html>" + e.outerHTML; return text.length > %d ? null : text})()`, most)
}

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
	"shoal.dev/shoal/pkg/wake"
)

// visit is the loading of one page.
type visit struct {
	ask     *Ask
	got     *Page
	gate    *gate
	reader  *reading.Guard
	body    int64 // at most this many bytes
	changed wake.Signal
	paused  chan *fetch.EventRequestPaused
	dialogs chan struct{}
	spent   chan struct{} // closed when no more requests are allowed
	stop    func()        // ends the load

	mu       sync.Mutex  // guards what follows, and got while the page loads
	frame    cdp.FrameID // the page itself
	document network.RequestID
	asked    int    // requests for the page itself
	left     int    // requests still allowed
	refused  error  // by BeforeHop, or for too many hops
	leaving  bool   // another document was requested
	broken   bool   // the browser shows its own error page
	cut      string // the browser's text for why the document's body broke off; ""
	crashed  bool   // the page's own process has ended
	loader   cdp.LoaderID
	stages   map[cdp.LoaderID]*stage // of every document of the page so far
	over     bool                    // the load is over: later events are ignored
}

// stage is the progress of a document.
type stage struct{ parsed, loaded, idle bool }

// stageLocked returns the stage of a document.
func (v *visit) stageLocked(of cdp.LoaderID) *stage {
	s := v.stages[of]
	if s == nil {
		s = &stage{}
		v.stages[of] = s
	}
	return s
}

// nowLocked returns the stage of the current document.
func (v *visit) nowLocked() stage {
	if v.leaving || v.loader == "" {
		return stage{}
	}
	return *v.stageLocked(v.loader)
}

// guard runs code that reads the browser's messages. A panic ends the page. record makes the
// message that is read; nil: none is kept.
func (v *visit) guard(record func() []byte, read func()) {
	panicked := v.reader.Run(reading.Page{URL: v.ask.URL, Record: record}, read)
	if panicked != nil {
		v.mu.Lock()
		v.refused = panicked
		v.mu.Unlock()
		v.stop()
	}
}

// hear handles every event, in order. It must not block.
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
		default: // beyond the bound: the request is never answered
		}
		return
	case *inspector.EventTargetCrashed:
		v.crashed = true
		v.stop() // the browser answers nothing any more
		return
	case *page.EventJavascriptDialogOpening:
		select {
		case v.dialogs <- struct{}{}:
		default: // one is pending already
		}
		return
	case *network.EventRequestWillBeSentExtraInfo: // the request was sent
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
		if e.RequestID != v.document || e.Canceled { // canceled: the page moves elsewhere
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
	v.changed.Raise()
}

// receiveLocked records the response with the page's document.
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

// answer decides on intercepted requests, and dismisses dialogs, which would block the page. Once
// the page has used up its requests, it intercepts and refuses all others. Otherwise open
// connections could carry any number of them.
func (v *visit) answer(ctx context.Context) {
	spent := v.spent
	for {
		select {
		case <-ctx.Done():
			return
		case <-spent:
			spent = nil
			// it fails only if the page is gone
			_, _ = chromedp.Call(ctx, fetch.Enable, fetch.EnableParams{
				Patterns: []*fetch.RequestPattern{{URLPattern: "*"}}})
		case <-v.dialogs:
			// the dialog may be gone
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
			// An error here means that the page is gone.
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

// isSpent says whether no more requests are allowed.
func (v *visit) isSpent() bool {
	select {
	case <-v.spent:
		return true
	default:
		return false
	}
}

// hop says whether the page itself may be requested at an address.
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
		v.changed.Raise()
		return false
	}
	v.got.Final, v.got.Hops, v.leaving = to, hops, true
	return true
}

// loadMore clicks or scrolls until nothing new loads, the bound is reached or time is short.
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

// growEvery is how often the page is measured after a click or a scroll.
const growEvery = 100 * time.Millisecond

// grows waits until the page has grown and then stopped growing, or the time for that is over.
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

// measure returns the number of the page's elements plus the length of its text.
func (v *visit) measure(ctx context.Context) (int, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[int](
		`document.getElementsByTagName("*").length + (document.body ? document.body.textContent.length : 0)`))
}

// moreScript clicks the selected element, or scrolls to the end. It returns false if there is
// nothing to click, or the selector is invalid.
func moreScript(click string) string {
	if click == "" {
		return `(() => {window.scrollTo(0, document.documentElement.scrollHeight); return true})()`
	}
	selector, _ := json.Marshal(click) // text always marshals
	return `(() => {let e; try {e = document.querySelector(` + string(selector) + `)} catch {return false}
		if (!e || e.disabled || e.getClientRects().length === 0) return false;
		e.scrollIntoView(); e.click(); return true})()`
}

// readScript returns the document's text, or null if it is too long.
func readScript(most int64) string {
	return fmt.Sprintf(`(() => {const e = document.documentElement; if (!e) return "";
		const text = "<!DOCTYPE html>" + e.outerHTML; return text.length > %d ? null : text})()`, most)
}

package web

import (
	"context"
	"errors"
	"strings"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/address"
)

// render fetches pages with a browser: tier render, or with proxies tier render+super.
type render struct {
	browser *chromium.Browser
	proxies *proxies // nil: no proxy
}

func (r *render) fetch(ctx context.Context, req *Request, deadline time.Time, page *Page) error {
	url, err := address.Canonical(req.URL)
	if err != nil {
		return err
	}
	ask := chromium.Ask{URL: url, Customer: req.Caller, Deadline: deadline, MaxHops: MaxHops,
		More: req.Load.More, Click: req.Load.Click,
		Max: req.Load.Max, BeforeHop: func(ctx context.Context,
			next string) error {
			return beforeHop(ctx, req, deadline, next, nil)
		}}
	host := address.AuthorityOf(url)
	if r.proxies != nil {
		if page.exit = r.proxies.pick(host); page.exit == nil {
			return errNoProxy()
		}
		ask.Proxy = page.exit.proxy
	}
	got, err := r.browser.Load(ctx, ask)
	if page.exit != nil && !errors.Is(err, ErrBusy) {
		r.proxies.report(host, page.exit, err)
	}
	page.Status, page.Final, page.Hops, page.Wire = got.Status, got.Final, got.Hops,
		got.Received
	page.ContentType, page.Body, page.Answer = got.ContentType, got.Body, loaded(got.Header)
	return err
}

// loaded is the response header of a loaded page.
type loaded map[string]string

// Header returns the value of a field, or "".
func (l loaded) Header(name string) string { return l[strings.ToLower(name)] }

// Release does nothing.
func (l loaded) Release() {}

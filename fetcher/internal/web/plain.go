package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// plain is HTTP without a browser: the cheapest tier, or with proxies tier super.
type plain struct {
	client  *egress.Client
	header  []egress.Field
	maxBody int64
	proxies *proxies // nil: no proxies
}

// exchange makes one request.
func (p *plain) exchange(ctx context.Context, ask *egress.Request, page *Page) (*egress.Response,
	error) {
	if p.proxies == nil {
		return p.client.Do(ctx, ask)
	}
	return p.proxies.through(ctx, p.client, ask, page)
}

// pageHeader returns the header of a page's request. The user agent comes first.
func pageHeader(userAgent string) []egress.Field {
	return []egress.Field{
		{Name: "User-Agent", Value: userAgent},
		{Name: "Accept", Value: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
		{Name: "Accept-Language", Value: "en;q=0.9,*;q=0.5"},
	}
}

// fetch follows redirects itself, so that each target passes the caller's rules and the address
// guard.
func (p *plain) fetch(ctx context.Context, req *Request, deadline time.Time, page *Page) error {
	ask := egress.Request{URL: req.URL, Caller: req.Caller, Deadline: deadline,
		MaxBody: p.maxBody}
	as := req.As
	for {
		p.compose(&ask, as)
		response, err := p.exchange(ctx, &ask, page)
		if err != nil {
			return err
		}
		page.Status, page.Answer = response.Status, response
		page.Wire += response.WireBytes
		location := response.Redirect()
		if location == "" {
			page.ContentType, page.Body = response.Header("Content-Type"), response.Body
			page.Final, err = address.Canonical(ask.URL)
			return err
		}
		page.Release()
		if page.Hops == MaxHops {
			return fault.New(fault.PageRedirects, "The page leads through more than %d redirects.",
				MaxHops)
		}
		next, err := address.Resolve(ask.URL, location)
		if err != nil {
			return fault.Wrap(fault.PageInvalidURL, err,
				"The page redirects to an invalid address.")
		}
		as = as.Redirected(page.Status, page.Final, next)
		if err := beforeHop(ctx, req, deadline, next, as); err != nil {
			return err
		}
		page.Hops++
		ask.URL, page.Final = next, next
	}
}

// compose sets the request: a page's, or that of a curl command. A curl command sets its whole
// header; only a missing user agent is added.
func (p *plain) compose(ask *egress.Request, as *curl.Request) {
	if as == nil {
		ask.Header = p.header
		return
	}
	// The command may contain its owner's secrets, and the response may be private.
	ask.Private = true
	ask.Method, ask.Header, ask.Body = as.Method, as.Header, as.Body
	named := slices.ContainsFunc(as.Header,
		func(f egress.Field) bool { return strings.EqualFold(f.Name, "User-Agent") })
	if !named {
		ask.Header = append([]egress.Field{p.header[0]}, as.Header...)
	}
}

// beforeHop calls the caller's BeforeHop within the deadline.
func beforeHop(ctx context.Context, req *Request, deadline time.Time, next string,
	as *curl.Request) error {
	if req.BeforeHop == nil {
		return nil
	}
	hop, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := req.BeforeHop(hop, next, as)
	if err != nil && hop.Err() != nil && ctx.Err() == nil {
		return fault.Wrap(fault.PageTimeout, err, "The request timed out before a redirect could "+
			"be followed.")
	}
	return err
}

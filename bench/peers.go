package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/process"
)

// exchangeTime bounds one exchange of a peer.
const exchangeTime = 10 * time.Second

// fasthttpCrawler is fasthttp's client with kept connections; it does nothing with the pages.
type fasthttpCrawler struct {
	client      *fasthttp.HostClient
	concurrency int
}

func startFasthttp(_ context.Context, t task) (crawler, error) { return newFasthttpCrawler(t), nil }

func newFasthttpCrawler(t task) *fasthttpCrawler {
	return &fasthttpCrawler{concurrency: t.Concurrency, client: &fasthttp.HostClient{
		Addr: t.Web, MaxConns: t.Concurrency, MaxIdemponentCallAttempts: 1,
		DisablePathNormalizing: true,
	}}
}

func (f *fasthttpCrawler) crawl(ctx context.Context, addresses []string) error {
	return fanOut(ctx, f.concurrency, addresses, func(_ context.Context, i int) error {
		return f.get(addresses[i], func([]byte) error { return nil })
	})
}

// get passes the body to use, which must not keep it.
func (f *fasthttpCrawler) get(address string, use func(body []byte) error) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(address)
	if err := f.client.DoTimeout(request, response, exchangeTime); err != nil {
		return err
	}
	if response.StatusCode() != fasthttp.StatusOK || len(response.Body()) < len(productPage) {
		return fmt.Errorf("status %d, %d bytes", response.StatusCode(), len(response.Body()))
	}
	return use(response.Body())
}

func (*fasthttpCrawler) rows(context.Context) ([][]byte, error) { return nil, nil }
func (*fasthttpCrawler) usage() (process.Usage, error)          { return ownUsage() }

func (f *fasthttpCrawler) close() error {
	f.client.CloseIdleConnections()
	return nil
}

// goqueryCrawler reads the fields as goquery's users do, with selectors compiled once.
type goqueryCrawler struct {
	*fasthttpCrawler
	fields   []model.Field
	matchers []goquery.Matcher
	found    [][]byte
}

func startGoquery(_ context.Context, t task) (crawler, error) {
	g := &goqueryCrawler{fasthttpCrawler: newFasthttpCrawler(t), fields: fields(t.Absent)}
	for _, field := range g.fields {
		matcher, err := cascadia.Compile(field.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector %s: %w", field.Selector, err)
		}
		// This matcher stops at the first match.
		g.matchers = append(g.matchers, goquery.SingleMatcher(matcher))
	}
	return g, nil
}

func (g *goqueryCrawler) crawl(ctx context.Context, addresses []string) error {
	g.found = make([][]byte, len(addresses))
	return fanOut(ctx, g.concurrency, addresses, func(_ context.Context, i int) error {
		return g.get(addresses[i], func(body []byte) (err error) {
			g.found[i], err = g.row(body)
			return err
		})
	})
}

func (g *goqueryCrawler) row(body []byte) ([]byte, error) {
	document, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	row := make(map[string]any, len(g.fields))
	for i, field := range g.fields {
		match := document.FindMatcher(g.matchers[i])
		switch {
		case match.Length() == 0:
			row[field.Name] = nil
		case field.Kind == model.Attr:
			row[field.Name] = match.AttrOr(field.Attr, "")
		default:
			row[field.Name] = strings.TrimSpace(match.Text())
		}
	}
	return json.Marshal(row)
}

func (g *goqueryCrawler) rows(context.Context) ([][]byte, error) { return g.found, nil }

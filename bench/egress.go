package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/testkit/process"
)

// egressCrawler is the minimum that the fetcher is compared with: one exchange and one extraction
// per page, without politeness and records.
type egressCrawler struct {
	client      *egress.Client
	extractor   *extract.Extractor
	concurrency int
	found       [][]byte
}

// newEgress makes the product's HTTP client, directed to the web.
func newEgress(t task) (*egress.Client, error) {
	return egress.New(egress.Config{
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins: map[string]string{"*.example": t.Web},
	})
}

func startEgress(_ context.Context, t task) (crawler, error) {
	extractor, err := extract.Compile(t.recipe())
	if err != nil {
		return nil, err
	}
	client, err := newEgress(t)
	return &egressCrawler{client: client, extractor: extractor, concurrency: t.Concurrency}, err
}

func (e *egressCrawler) crawl(ctx context.Context, addresses []string) error {
	e.found = make([][]byte, len(addresses))
	return fanOut(ctx, e.concurrency, addresses, func(ctx context.Context, i int) (err error) {
		e.found[i], err = e.row(ctx, addresses[i])
		return err
	})
}

func (e *egressCrawler) row(ctx context.Context, address string) ([]byte, error) {
	answer, err := e.client.Do(ctx,
		&egress.Request{URL: address, Deadline: time.Now().Add(exchangeTime)})
	if err != nil {
		return nil, err
	}
	defer answer.Release()
	page := extract.Page{URL: address, ContentType: answer.Header("Content-Type"),
		Body: answer.Body}
	result, err := e.extractor.Extract(page)
	if err != nil {
		return nil, err
	}
	if len(result.Rows) != 1 {
		return nil, fmt.Errorf("status %d, %d rows", answer.Status, len(result.Rows))
	}
	return result.Rows[0], nil
}

func (e *egressCrawler) rows(context.Context) ([][]byte, error) { return e.found, nil }
func (*egressCrawler) usage() (process.Usage, error)            { return ownUsage() }

func (e *egressCrawler) close() error {
	e.client.Close()
	return nil
}

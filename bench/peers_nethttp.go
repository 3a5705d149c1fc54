package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"shoal.dev/shoal/testkit/process"
)

// netHTTPCrawler is the standard library's client with kept connections; it does nothing with the
// pages.
type netHTTPCrawler struct {
	client      *http.Client
	concurrency int
}

func startNetHTTP(_ context.Context, t task) (crawler, error) {
	var dialer net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, t.Web)
		},
		// The default of 2 would close connections that other requests to the host have opened.
		MaxIdleConnsPerHost: t.Concurrency,
		ReadBufferSize:      64 << 10, // one read per page
		DisableCompression:  true,
	}
	client := &http.Client{Timeout: exchangeTime, Transport: transport}
	return &netHTTPCrawler{concurrency: t.Concurrency, client: client}, nil
}

func (n *netHTTPCrawler) crawl(ctx context.Context, addresses []string) error {
	return fanOut(ctx, n.concurrency, addresses, func(ctx context.Context, i int) error {
		return n.get(ctx, addresses[i])
	})
}

func (n *netHTTPCrawler) get(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := n.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read-only
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || size < int64(len(productPage)) {
		return fmt.Errorf("status %d, %d bytes", response.StatusCode, size)
	}
	return nil
}

func (*netHTTPCrawler) rows(context.Context) ([][]byte, error) { return nil, nil }
func (*netHTTPCrawler) usage() (process.Usage, error)          { return ownUsage() }

func (n *netHTTPCrawler) close() error {
	n.client.CloseIdleConnections()
	return nil
}

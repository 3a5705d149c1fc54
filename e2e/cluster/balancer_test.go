//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/testkit/cluster"
)

// balancer is a load balancer in front of the API servers. It continually asks each whether it is
// ready, keeps connections, and tries the next server when one refuses a connection. It repeats
// nothing that a server has begun to answer. HTTP itself repeats a call, under one idempotency key,
// if its connection was closed while sending.
type balancer struct {
	http    *http.Transport
	servers []*cluster.Node
	mu      sync.Mutex
	ready   map[*cluster.Node]bool
	next    int
	changed chan struct{} // closed when a server's readiness changes
}

func newBalancer(ctx context.Context, t *testing.T, c *cluster.Cluster) *balancer {
	t.Helper()
	transport := c.HTTP().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = false
	b := &balancer{http: transport, servers: c.With(cluster.APIServer),
		ready:   map[*cluster.Node]bool{},
		changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	for _, n := range b.servers {
		watching.Go(func() { b.watch(ctx, c.HTTP(), n) })
	}
	t.Cleanup(func() {
		cancel()
		watching.Wait()
		transport.CloseIdleConnections()
	})
	return b
}

func (b *balancer) watch(ctx context.Context, client *http.Client, n *cluster.Node) {
	client.Timeout = 2 * time.Second
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Server()+"/readyz", nil)
		ready := false
		if err == nil {
			if answer, err := client.Do(request); err == nil {
				ready = answer.StatusCode == http.StatusOK
				_ = answer.Body.Close()
			}
		}
		b.mu.Lock()
		if b.ready[n] != ready {
			b.ready[n] = ready
			close(b.changed)
			b.changed = make(chan struct{})
		}
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(healthEvery):
		}
	}
}

// pick returns the next ready server that is not in without. It is nil if there is none; the
// channel signals a change.
func (b *balancer) pick(without map[*cluster.Node]bool) (*cluster.Node, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.servers {
		n := b.servers[b.next%len(b.servers)]
		b.next++
		if b.ready[n] && !without[n] {
			return n, nil
		}
	}
	return nil, b.changed
}

// seesNot waits until the balancer no longer sends to a server.
func (b *balancer) seesNot(ctx context.Context, n *cluster.Node) error {
	for {
		b.mu.Lock()
		ready, changed := b.ready[n], b.changed
		b.mu.Unlock()
		if !ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the balancer: %w", ctx.Err())
		case <-changed:
		}
	}
}

// RoundTrip sends a request to a ready server.
func (b *balancer) RoundTrip(request *http.Request) (*http.Response, error) {
	refused := map[*cluster.Node]bool{}
	for {
		n, changed := b.pick(refused)
		if n == nil {
			select {
			case <-request.Context().Done():
				return nil, fmt.Errorf("the balancer: no server is ready: %w",
					request.Context().Err())
			case <-changed:
				clear(refused)
			}
			continue
		}
		sent := request.Clone(request.Context())
		sent.URL.Host = strings.TrimPrefix(n.Server(), "http://")
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			sent.Body = body
		}
		answer, err := b.http.RoundTrip(sent)
		var network *net.OpError
		if err == nil || !errors.As(err, &network) || network.Op != "dial" {
			return answer, err
		}
		refused[n] = true
	}
}

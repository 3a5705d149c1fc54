//go:build linux

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestScenarios runs package e2e's scenarios on a cluster.
func TestScenarios(t *testing.T) {
	t.Parallel()
	suite.Run(t, spread{newNetwork(t)})
}

const spreadFetchers = 2

// spread is the platform of a cluster with one node of each role, and two fetchers.
type spread struct{ network *netns.Network }

func (s spread) Web(t *testing.T, config synthweb.Config) *synthweb.Web {
	return newWeb(t, s.network, config)
}

func (spread) Fetchers() int { return spreadFetchers }

func (s spread) Product(t *testing.T, args []string, webs ...*synthweb.Web) suite.Product {
	nodes := cluster.Layout(1, spreadFetchers, 1, 1, 1)
	nodes[len(nodes)-1].Args = []string{"--self-key"}
	p := &product{Cluster: newCluster(t, s.network, nodes, args, webs...)}
	p.Up(t)
	return p
}

// product is a cluster as the scenarios use it.
type product struct {
	*cluster.Cluster
	key string
}

func (p *product) Up(t *testing.T) {
	t.Helper()
	begin := time.Now()
	start(t, p.Cluster)
	t.Logf("started in %v", time.Since(begin).Round(time.Millisecond))
	p.key = strings.TrimSpace(string(suite.Must(
		p.With(cluster.APIServer)[0].ReadFile("api-key"))(t)))
}

func (p *product) Down(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := p.Stop(stopLimit); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %v", time.Since(begin).Round(time.Millisecond))
}

func (p *product) Self() suite.Client { return clientOf(p.Cluster, p.key) }

func (p *product) Mint(ctx context.Context, args ...string) (string, error) {
	return mint(ctx, p.Cluster, args...)
}

func (p *product) Command(ctx context.Context, args ...string) (string, error) {
	server := p.With(cluster.APIServer)[0].Server()
	return p.Cluster.Command(ctx, []string{"SHOAL_SERVER=" + server, "SHOAL_KEY=" + p.key}, args...)
}

func (p *product) Records(ctx context.Context, job string) ([]rowstore.Record, error) {
	return readRecords(ctx, p.Cluster, job)
}

func (p *product) Lists(ctx context.Context) (lists []rowstore.ListInfo, err error) {
	err = withRows(ctx, p.Cluster, func(store rowstore.Store) error {
		lists, err = store.AllLists(ctx)
		return err
	})
	return lists, err
}

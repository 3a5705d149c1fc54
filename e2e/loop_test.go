package e2e

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/streamtest"
	"shoal.dev/shoal/testkit/synthweb"
)

// clusterNode is the only node of the cluster in the test's process.
const clusterNode = "test"

// clusterPace is the pace for hosts of the synthetic web.
var clusterPace = fetcher.Pace{Rate: 1000, Connections: 4}

// cluster runs all roles in the test's own process, over a log that can lose records. Markers go
// out often, so that a loss costs little time.
type cluster struct {
	suite.Client
	data    string
	log     *streamtest.Faulty
	store   rowstore.Store
	control controlclient.Client
	// saves makes backups and restores them.
	saves   controlclient.Operator
	fetcher fetcher.Config // of the node that has all roles
	stop    func() error   // ends all roles, once
}

func newCluster(t *testing.T, web *synthweb.Web, seed uint64,
	change ...func(*controlplane.Config, *fetcher.Config)) *cluster {
	t.Helper()
	c := &cluster{data: t.TempDir()}
	settings := controlplane.Defaults()
	memory := suite.Must(stream.NewMemory(stream.Config{Partitions: int(settings.Shards)}))(t)
	c.log = streamtest.NewFaulty(memory, seed)
	store := suite.Must(sqlite.Open(sqlite.Config{Dir: filepath.Join(c.data, rowsDir)}))(t)
	out := suite.Must(egress.New(egress.Config{
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins: map[string]string{web.Pattern(): web.Addr()}}))(t)
	logger := slog.New(slog.DiscardHandler)
	source := ids.Random{Now: time.Now}

	settings.Dir, settings.Node, settings.Boot, settings.Capacity = c.data, clusterNode,
		source.New(), 1
	settings.Log, settings.Store, settings.Logger = c.log, store, logger
	settings.HostRate, settings.MaxHostRate = clusterPace.Rate, clusterPace.Rate
	settings.MarkerEvery = 100 * time.Millisecond
	if *atOnce {
		settings.ArchiveEvery, settings.ArchiveKeep = suite.AtOnceEvery, 0
	}
	settings.HostOf = func(url string) string {
		return address.AuthorityOf(suite.Must(address.Canonical(url))(t))
	}
	settings.ShardOf = func(host string) int {
		return address.Shard(host, int(settings.Shards))
	}
	pages := suite.Must(fetcher.OpenWeb(t.Context(), out, fetcher.WebConfig{}))(t)
	c.fetcher = fetcher.Config{Node: clusterNode, Boot: settings.Boot, Log: c.log, Web: pages,
		IDs:     source,
		ShardOf: settings.ShardOf, Pace: clusterPace, MaxPace: clusterPace}
	for _, change := range change {
		change(&settings, &c.fetcher)
	}
	control := suite.Must(controlplane.New(settings))(t)
	reach := control.Client()
	c.control, c.fetcher.Control = reach, fetcher.FromClient(reach)
	c.store, c.saves = store, control.Operator()
	api := suite.Must(apiserver.New(apiserver.Config{Client: reach, Store: store, Guard: out,
		Clock: clock.System{}, IDs: source,
		DataDir: c.data, NoRateLimits: true, MaxHostRate: settings.MaxHostRate,
		MaxHostConnections: clusterPace.Connections,
		Node:               clusterNode, Boot: settings.Boot, Logger: logger}))(t)
	listener := suite.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	key := make(chan string, 1)
	parts := []lifecycle.Part{
		{Name: "controlplane", Run: control.Run, Ready: control.Ready()},
		{Name: "ingest", Run: ingest.New(ingest.Config{Log: c.log, Store: store,
			Control: ingest.FromClient(reach)}).Run},
		{Name: "billing", Run: billing.New(billing.Config{Log: c.log, Settle: reach.Settle,
			Logger: logger}).Run},
		{Name: "fetcher", Run: fetcher.New(c.fetcher).Run},
		{Name: "apiserver", Run: func(ctx context.Context) error {
			secret, err := apiserver.SelfKey(ctx, reach, source, c.data)
			if err != nil {
				return errors.Join(err, listener.Close())
			}
			key <- secret
			return api.Serve(ctx, listener)
		}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- lifecycle.Run(ctx, parts...) }()
	c.stop = func() error {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before
		}
		cancel()
		err := <-ended
		pages.Close()
		out.Close()
		return errors.Join(err, c.log.Close(), store.Close())
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	c.Client = suite.Client{Server: "http://" + listener.Addr().String()}
	select {
	case c.Token = <-key:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	case <-suite.Within(t, suite.ReadyWithin).Done():
		t.Fatal("the cluster does not come up")
	}
	return c
}

// admin returns a client with administrator's rights.
func (c *cluster) admin(t *testing.T) suite.Client {
	t.Helper()
	token := suite.Must(apiserver.MintToken(c.data, apiserver.SelfCustomer, true, time.Now(),
		time.Hour))(t)
	return suite.Client{Server: c.Server, Token: strings.TrimSpace(token)}
}

// fill gives the self-hosting customer money.
func (c *cluster) fill(t *testing.T, micros int64) {
	t.Helper()
	if err := c.admin(t).Adjust(t.Context(), apiserver.SelfCustomer, micros); err != nil {
		t.Fatal(err)
	}
}

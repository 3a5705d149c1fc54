package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

// Services are what the roles work on. Only this file knows which implementations there are:
// nothing else asks whether a process is standalone.
type Services struct {
	log   stream.Log       // nil: it is not open
	store rowstore.Store   // nil: it is not open
	cache cache.Cache      // nil: it is not open
	blobs *blobstore.Store // nil: it is not open, or there is none
	// state is the control plane's client, once there is one.
	state atomic.Pointer[controlclient.Client]
}

// rowsDir is the embedded row store's place in a data directory.
const rowsDir = "rows"

// OpenEmbedded opens services for all nodes of this process: a log in memory, rows and blobs in a
// directory, a cache in memory.
func OpenEmbedded(dir string) (*Services, error) {
	log, err := embeddedLog()
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(sqlite.Config{Dir: dir, Point: func(string) {}})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	blobs, err := blobstore.OpenDirectory(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, errors.Join(err, log.Close(), store.Close())
	}
	return &Services{log: log, store: store, cache: cache.NewLocal(clock.System{}), blobs: blobs},
		nil
}

// Close ends the services, once the nodes on them have stopped.
func (s *Services) Close() error {
	return errors.Join(s.cache.Close(), s.log.Close(), s.store.Close(), s.blobs.Close())
}

// openLog opens the log that the settings name, or else an embedded one.
func (n *node) openLog(ctx context.Context) (err error) {
	if n.services.log == nil {
		if n.services.log, err = n.config.Services.openLog(ctx, n); err != nil {
			return err
		}
		n.closeLater(n.services.log.Close)
	}
	n.records = stream.Measured(n.services.log, n.clock, n.metrics)
	return nil
}

// openRows opens the row store that the settings name, or else one in the data directory.
func (n *node) openRows(ctx context.Context) (err error) {
	if n.services.store != nil {
		return nil
	}
	if n.services.store, err = n.config.Services.openRows(ctx, n); err != nil {
		return err
	}
	n.closeLater(n.services.store.Close)
	return nil
}

// placeRows makes a copy the row store of a data directory that has none.
func placeRows(ctx context.Context, copied io.Reader, data string, point func(string)) error {
	return sqlite.Place(ctx, copied, filepath.Join(data, rowsDir), point)
}

// openCache opens the cache that the settings name, or else an embedded one.
func (n *node) openCache(ctx context.Context) (err error) {
	if n.services.cache == nil {
		if n.services.cache, err = n.config.Services.openCache(ctx, n); err != nil {
			return err
		}
		n.closeLater(n.services.cache.Close)
	}
	cache.Measure(n.services.cache, n.metrics)
	return nil
}

func embeddedLog() (stream.Log, error) {
	log, err := stream.NewMemory(stream.Config{Partitions: int(controlplane.Defaults().Shards)})
	if err != nil {
		return nil, err // a nil pointer would make a non-nil interface
	}
	return log, nil
}

func (c *ServicesConfig) openLog(ctx context.Context, n *node) (stream.Log, error) {
	if len(c.KafkaBrokers) == 0 {
		return embeddedLog()
	}
	settings, err := c.Kafka()
	if err != nil {
		return nil, err
	}
	settings.Prefix, settings.Replicas = c.KafkaPrefix, c.KafkaReplicas
	settings.Partitions = int(controlplane.Defaults().Shards)
	settings.Node, settings.Logger, settings.Clock = n.name, n.logger, n.clock
	log, err := kafka.Open(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("--kafka-brokers: %w", err)
	}
	return log, nil
}

func (c *ServicesConfig) openRows(ctx context.Context, n *node) (rowstore.Store, error) {
	if c.ClickhouseURL == "" {
		store, err := sqlite.Open(sqlite.Config{Dir: filepath.Join(n.config.Data, rowsDir),
			Point: n.point, Free: n.free})
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	settings, err := c.clickhouse()
	if err != nil {
		return nil, err
	}
	settings.Node, settings.Clock, settings.Point = n.name, n.clock, n.point
	settings.Logger = n.logger
	store, err := clickhouse.Open(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("--clickhouse-url: %w", err)
	}
	return store, nil
}

func (c *ServicesConfig) openCache(ctx context.Context, n *node) (cache.Cache, error) {
	if c.RedisAddr == "" {
		return cache.NewLocal(n.clock), nil
	}
	settings, err := c.redis()
	if err != nil {
		return nil, err
	}
	settings.Prefix, settings.Processes = c.RedisPrefix, n.services.apiServers
	settings.Clock, settings.Logger = n.clock, n.logger
	redis, err := cache.Open(settings)
	if err != nil {
		return nil, err
	}
	if err := redis.Admitted(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("--redis-addr: %w", err), redis.Close())
	}
	return redis, nil
}

// identify reads the identities of the open services.
func (s *Services) identify(ctx context.Context) (shared controlplane.Services, err error) {
	if s.log != nil {
		if shared.Log, err = s.log.Identity(ctx); err != nil {
			return shared, err
		}
	}
	if s.store != nil {
		if shared.Rows, err = s.store.Identity(ctx); err != nil {
			return shared, err
		}
	}
	shared.Claim = s.claim
	return shared, nil
}

// claim marks the open services as a cluster's.
func (s *Services) claim(ctx context.Context, cluster ids.ID, take bool) error {
	if s.log != nil {
		if err := claim(ctx, "the log (--kafka-prefix)", s.log.Claim, cluster, take); err != nil {
			return err
		}
	}
	if s.store != nil {
		return claim(ctx, "the database (--clickhouse-url)", s.store.Claim, cluster, take)
	}
	return nil
}

func claim(ctx context.Context, name string,
	of func(ctx context.Context, owner string, take bool) (string, error),
	cluster ids.ID, take bool) error {
	switch whose, err := of(ctx, cluster.String(), take); {
	case err != nil:
		return err
	case whose != cluster.String():
		return fault.New(fault.OtherServices, "%s is that of cluster %s, and this is cluster "+
			"%s: each has its own",
			name, whose, cluster)
	}
	return nil
}

// apiServers is how many processes share the limits.
func (s *Services) apiServers() int {
	state := s.state.Load()
	if state == nil {
		return 1
	}
	servers := 0
	for _, node := range (*state).View().Nodes() {
		for _, role := range node.Roles {
			if role == "apiserver" {
				servers++
			}
		}
	}
	return max(servers, 1)
}

// watchGroups makes lag cover roles of other processes.
func (s *Services) watchGroups() {
	s.log.Watch(stream.Pages, ingest.Group)
	s.log.Watch(stream.Receipts, billing.Group)
}

// lag is how many unread records each topic holds, where known. Only the leader knows, from
// fetchers, how far tasks were read on other machines.
func (s *Services) lag(ctx context.Context) map[string]int64 {
	lag := map[string]int64{}
	for _, topic := range stream.Topics() {
		lag[topic.String()] = s.log.Lag(topic)
	}
	if s.log.Embedded() {
		return lag
	}
	delete(lag, stream.Tasks.String())
	control := *s.state.Load()
	if status, err := control.Status(ctx); err != nil || status.Leader == "" {
		return lag
	}
	nodes, err := control.Nodes(ctx)
	if err != nil {
		return lag
	}
	var unread int64
	for i := range nodes {
		unread += nodes[i].Unread
	}
	lag[stream.Tasks.String()] = unread
	return lag
}

// idle says whether everything published to a topic has been processed. It is nil for a log that
// outlives this process, since others continue with it.
func (s *Services) idle(topic stream.Topic) func() bool {
	if !s.log.Embedded() {
		return nil
	}
	return func() bool { return s.log.Lag(topic) == 0 }
}

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
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

// Services are what the roles work on. This file is the one place that knows which implementations there are: nothing
// else asks whether a process is alone.
type Services struct {
	log   stream.Log
	store rowstore.Store
	cache cache.Cache
	// shared are the names of log and store, where they are not this process's own.
	shared controlplane.Services
	// state is the control plane's, once there is one.
	state atomic.Pointer[controlclient.Client]
}

// openServices opens what the config names, and what it does not name in this process: a log in memory, rows in a
// directory, limits and caches of its own.
func openServices(ctx context.Context, config ServicesConfig, node, dir string, log *slog.Logger,
	now clock.Clock, point func(string)) (_ *Services, err error) {
	s := &Services{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.log, err = openStream(ctx, config, node, log, now); err != nil {
		return nil, err
	}
	if s.store, err = openRows(ctx, config, node, dir, log, now, point); err != nil {
		return nil, err
	}
	if s.cache, err = s.openCache(ctx, config, log, now); err != nil {
		return nil, err
	}
	if s.shared, err = s.identify(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenEmbedded opens services for all nodes of this process: a log in memory, rows in a directory, a cache in memory.
func OpenEmbedded(ctx context.Context, node, dir string) (*Services, error) {
	return openServices(ctx, ServicesConfig{}, node, dir, nil, clock.System{}, func(string) {})
}

// identify asks log and store who they are.
func (s *Services) identify(ctx context.Context) (shared controlplane.Services, err error) {
	type named interface {
		Identity(ctx context.Context) (string, error)
	}
	if log, ok := s.log.(named); ok {
		if shared.Log, err = log.Identity(ctx); err != nil {
			return shared, err
		}
	}
	if store, ok := s.store.(named); ok {
		if shared.Rows, err = store.Identity(ctx); err != nil {
			return shared, err
		}
	}
	shared.Claim = s.claim
	return shared, nil
}

// claim marks log and store as a cluster's, where they are not this process's own.
func (s *Services) claim(ctx context.Context, cluster ids.ID, take bool) error {
	type claimed interface {
		Claim(ctx context.Context, owner string, take bool) (whose string, err error)
	}
	for _, service := range []struct {
		name string
		of   any
	}{{"the log (--kafka-prefix)", s.log}, {"the database (--clickhouse-url)", s.store}} {
		of, ok := service.of.(claimed)
		if !ok {
			continue
		}
		switch whose, err := of.Claim(ctx, cluster.String(), take); {
		case err != nil:
			return err
		case whose != cluster.String():
			return fault.New(fault.OtherServices, "%s is that of cluster %s, and this is cluster %s: each has its own",
				service.name, whose, cluster)
		}
	}
	return nil
}

func openStream(ctx context.Context, config ServicesConfig, node string, log *slog.Logger, now clock.Clock) (stream.Log,
	error) {
	partitions := int(controlplane.Defaults().Shards)
	if len(config.KafkaBrokers) == 0 {
		return opened[stream.Log](stream.NewMemory(stream.Config{Partitions: partitions}))
	}
	settings, err := config.Kafka()
	if err != nil {
		return nil, err
	}
	settings.Prefix, settings.Partitions, settings.Replicas = config.KafkaPrefix, partitions, config.KafkaReplicas
	settings.Node, settings.Logger, settings.Clock = node, log, now
	records, err := opened[stream.Log](kafka.Open(ctx, settings))
	if err != nil {
		return nil, fmt.Errorf("--kafka-brokers: %w", err)
	}
	return records, nil
}

func openRows(ctx context.Context, config ServicesConfig, node, dir string, log *slog.Logger, now clock.Clock,
	point func(string)) (rowstore.Store, error) {
	if config.ClickhouseURL == "" {
		return opened[rowstore.Store](sqlite.Open(sqlite.Config{Dir: dir, Point: point}))
	}
	settings, err := config.clickhouse()
	if err != nil {
		return nil, err
	}
	settings.Node, settings.Clock, settings.Logger, settings.Point = node, now, log, point
	store, err := opened[rowstore.Store](clickhouse.Open(ctx, settings))
	if err != nil {
		return nil, fmt.Errorf("--clickhouse-url: %w", err)
	}
	return store, nil
}

func (s *Services) openCache(ctx context.Context, config ServicesConfig, log *slog.Logger, now clock.Clock) (cache.Cache,
	error) {
	if config.RedisAddr == "" {
		return cache.NewLocal(now), nil
	}
	settings, err := config.redis()
	if err != nil {
		return nil, err
	}
	settings.Prefix, settings.Processes, settings.Clock, settings.Log = config.RedisPrefix, s.apiServers, now, log
	redis, err := cache.Open(settings)
	if err != nil {
		return nil, err
	}
	if err := redis.Admitted(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("--redis-addr: %w", err), redis.Close())
	}
	return redis, nil
}

// opened keeps what could not be opened from becoming an interface that holds a nil pointer.
func opened[I any, T any](service T, err error) (I, error) {
	if err != nil {
		var none I
		return none, err
	}
	return any(service).(I), nil
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

// watchGroups has lag know how far roles of other processes are.
func (s *Services) watchGroups() {
	if log, ok := s.log.(*kafka.Log); ok {
		log.Watch(stream.Pages, ingest.Group)
		log.Watch(stream.Receipts, billing.Group)
	}
}

// lag is how many records each topic holds, of those of which it is known: how far tasks were read on other machines the
// leader alone hears, from fetchers.
func (s *Services) lag(ctx context.Context) map[string]int64 {
	lag := map[string]int64{}
	for _, topic := range stream.Topics() {
		lag[topic.String()] = s.log.Lag(topic)
	}
	if _, embedded := s.log.(*stream.Memory); embedded {
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

// idle says whether everything that was published to a topic has been worked on. It is nil for a log that outlives this
// process: others go on with it.
func (s *Services) idle(topic stream.Topic) func() bool {
	if _, embedded := s.log.(*stream.Memory); !embedded {
		return nil
	}
	return func() bool { return s.log.Lag(topic) == 0 }
}

// Close ends the services, once the roles have stopped.
func (s *Services) Close() error {
	var err error
	if s.cache != nil {
		err = s.cache.Close()
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

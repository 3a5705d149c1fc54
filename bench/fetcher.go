package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/testkit/process"
)

const (
	shards    = 64 // the default of a new cluster
	leaseTime = time.Hour
	// unbounded is a pace that never delays a host, so that work is measured, not waiting.
	unbounded = 1e6
)

var (
	benchJob     = ids.ID{11: 1}
	benchScraper = ids.ID{11: 2}
)

// fetcherCrawler is the fetcher role between the two ends of a log: the bench writes its tasks and
// reads its pages.
type fetcherCrawler struct {
	log    *stream.Memory
	out    *egress.Client
	web    *fetcher.HTTPWeb
	pages  stream.Reader
	stop   context.CancelFunc
	done   chan error
	seq    uint32
	gotten [][]byte // page records of the last crawl
}

func startFetcher(ctx context.Context, t task) (crawler, error) {
	log, err := stream.NewMemory(stream.Config{Partitions: shards})
	if err != nil {
		return nil, err
	}
	pages, err := log.Consume(stream.Pages, "bench")
	if err != nil {
		return nil, err
	}
	out, err := newEgress(t)
	if err != nil {
		return nil, err
	}
	web, err := fetcher.OpenWeb(ctx, out, fetcher.WebConfig{})
	if err != nil {
		return nil, err
	}
	c := &fetcherCrawler{log: log, out: out, web: web, pages: pages,
		done: make(chan error, 1)}
	control := &oneRun{holding: make(chan struct{}),
		recipe: &client.Recipe{Scraper: benchScraper, Revision: 1, Recipe: t.recipe()}}
	role := fetcher.New(fetcher.Config{
		Node: "bench", Boot: ids.ID{11: 3}, Log: log, Control: control, Web: c.web,
		IDs:     ids.Random{Now: time.Now},
		ShardOf: func(authority string) int { return address.Shard(authority, shards) },
		Workers: t.Concurrency, Pace: fetcher.Pace{Rate: unbounded, Connections: unbounded},
	})
	// close ends it, after its log's readers.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() { c.done <- role.Run(running) }()
	select {
	case <-control.holding: // tasks written before would be missed
		return c, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), c.close())
	}
}

func (c *fetcherCrawler) crawl(ctx context.Context, addresses []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var feeding sync.WaitGroup
	feeding.Go(func() {
		if err := c.feed(ctx, addresses); err != nil {
			cancel(err)
		}
	})
	defer feeding.Wait()
	c.gotten = make([][]byte, 0, len(addresses))
	for len(c.gotten) < len(addresses) {
		messages, err := c.pages.Fetch(ctx, 512)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		for _, m := range messages {
			c.gotten = append(c.gotten, bytes.Clone(m.Value))
		}
		if err := c.pages.Commit(ctx, messages); err != nil {
			return err
		}
	}
	return nil
}

// feed writes the tasks, like the dispatcher.
func (c *fetcherCrawler) feed(ctx context.Context, addresses []string) error {
	for _, at := range addresses {
		record := stream.EncodeTask(model.Task{
			Job: benchJob, Seq: c.seq, Customer: "bench", Scraper: benchScraper, Revision: 1,
			URL:   at,
			Tiers: model.TiersOf(model.Plain), Budget: 10, Attempt: 1, Number: uint64(c.seq) + 1,
		})
		c.seq++
		if err := c.log.Publish(ctx, stream.Tasks, address.Shard(address.AuthorityOf(at), shards),
			record); err != nil {
			return fmt.Errorf("write task: %w", err)
		}
	}
	return nil
}

func (c *fetcherCrawler) rows(context.Context) ([][]byte, error) {
	var rows [][]byte
	for _, record := range c.gotten {
		page, _, err := stream.DecodePages(record)
		if err != nil {
			return nil, err
		}
		if page == nil || page.Outcome != model.Delivered || len(page.Rows) != 1 {
			return nil, fmt.Errorf("not a page with one row: %+v", page)
		}
		rows = append(rows, page.Rows[0])
	}
	return rows, nil
}

func (*fetcherCrawler) usage() (process.Usage, error) { return ownUsage() }

func (c *fetcherCrawler) close() error {
	c.stop()
	err := <-c.done
	c.web.Close()
	c.out.Close()
	return errors.Join(err, c.pages.Close(), c.log.Close())
}

// oneRun is a control plane with one run, which never ends, and one fetcher with all shards.
type oneRun struct {
	recipe  *client.Recipe
	once    sync.Once
	holding chan struct{} // closed when the fetcher holds the shards
}

func (o *oneRun) View() fetcher.View                          { return o }
func (o *oneRun) Fresh(context.Context) (fetcher.View, error) { return o, nil }
func (o *oneRun) Cluster() *client.Cluster {
	return &client.Cluster{Shards: shards}
}
func (o *oneRun) Entry(ids.ID) *client.Entry           { return nil }
func (o *oneRun) Recipe(ids.ID, uint32) *client.Recipe { return o.recipe }
func (o *oneRun) Shards() []*client.Shard              { return nil }

func (o *oneRun) Job(ids.ID) *client.Job { return &client.Job{ID: benchJob, State: model.Running} }

func (o *oneRun) Heartbeat(_ context.Context, beat client.Heartbeat) (client.Leases, error) {
	if len(beat.Holding) == shards {
		o.once.Do(func() { close(o.holding) })
	}
	leases := client.Leases{For: leaseTime}
	for n := range uint16(shards) {
		leases.Hold = append(leases.Hold, client.ShardEpoch{Shard: n, Epoch: 1})
	}
	return leases, nil
}

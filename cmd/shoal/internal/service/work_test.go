package service

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/synthweb"
)

// Parameters of the test below.
const (
	openItems   = 10_000
	loadKind    = "load" // done by the test's own node
	runPages    = 20
	runWithin   = 3 * time.Second
	mostPerTime = 2 // commands a second
)

// TestTenThousandItemsBesideARun: background work costs few commands, however many items are open,
// and does not hold up a small run.
func TestTenThousandItemsBesideARun(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	web, err := synthweb.Start(synthweb.Config{Hosts: runPages, PagesPerHost: 2,
		PageBytes: []int{2500}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	l := startLoad(t, web)
	l.enqueue()
	metrics := telemetry.NewMetrics()
	beside := l.worker(metrics)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	before, began := l.exchanges(l.metrics), time.Now()
	go func() {
		defer close(ended)
		_ = beside.Run(ctx) // always nil
	}()
	took := l.run(web)
	for l.open() > 0 {
		if !clock.Pause(t.Context(), clock.System{}, time.Second) {
			t.Fatal("the items are not done")
		}
	}
	elapsed := time.Since(began)
	stop()
	<-ended
	commands := l.exchanges(l.metrics) - before + l.exchanges(metrics)
	rate := commands / elapsed.Seconds()
	t.Logf("%d items done in %v by %.0f commands, %.2f a second; a run of %d pages beside them "+
		"took %v", openItems, elapsed.Round(time.Second), commands, rate, runPages,
		took.Round(time.Millisecond))
	if rate > mostPerTime {
		t.Errorf("%.2f commands a second, want at most %d", rate, mostPerTime)
	}
	if took > runWithin {
		t.Errorf("the run took %v, want %v at most", took, runWithin)
	}
}

// load is a whole service in this process.
type load struct {
	t       *testing.T
	client  controlclient.Client
	caller  api.Client
	ids     ids.Random
	metrics *telemetry.Metrics
}

func startLoad(t *testing.T, web *synthweb.Web) *load {
	t.Helper()
	on, err := OpenEmbedded(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, ids: ids.Random{Now: time.Now}, metrics: telemetry.NewMetrics()}
	ready := make(chan string, 1)
	config := Config{Data: t.TempDir(), Listen: "127.0.0.1:0", Roles: identity.Roles(), HostRate: 1,
		HostConnections: 2, MaxHostRate: 10, MaxHostConnections: 8, NoRateLimits: true,
		EgressAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins:     map[string]string{web.Pattern(): web.Addr()},
		Metrics:     l.metrics, Chromium: NoChromium, Cluster: ClusterConfig{Capacity: 1},
		SelfKey: true, Ready: func(listening string) { ready <- "http://" + listening }}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- RunOn(ctx, config, on) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := on.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case server := <-ready:
		key, err := datadir.ReadLine(config.Data, datadir.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		l.caller = api.Client{Server: server, Token: key}
	case err := <-ended:
		ended <- nil
		t.Fatalf("the service ended: %v", err)
	}
	l.client = *on.state.Load()
	return l
}

// enqueue opens the items for a hundred customers.
func (l *load) enqueue() {
	var callers sync.WaitGroup
	const customers = 100
	for c := range customers {
		callers.Go(func() {
			for range openItems / customers {
				item := controlclient.EnqueueWork{ID: l.ids.New(), Kind: loadKind,
					Customer: fmt.Sprint("c", c)}
				if _, err := controlclient.Do(l.t.Context(), l.client, item, nil); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if n := l.open(); n != openItems {
		l.t.Fatalf("%d items are open", n)
	}
}

// worker is another node that works on the items.
func (l *load) worker(metrics *telemetry.Metrics) *work.Worker {
	l.t.Helper()
	boot := l.ids.New()
	node := controlclient.RegisterNode{Name: "beside", Boot: boot}
	if _, err := controlclient.Do(l.t.Context(), l.client, node, nil); err != nil {
		l.t.Fatal(err)
	}
	w := work.New(work.Config{Table: controlclient.Work(l.client, node.Name, boot), IDs: l.ids,
		Metrics: metrics})
	w.Add(work.Kind{Name: loadKind, AtOnce: 8, Held: 512,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			if !clock.Pause(ctx, clock.System{}, time.Millisecond) {
				return work.Outcome{}, ctx.Err()
			}
			if len(item.Progress) < 2 {
				return work.GoOn(append(item.Progress, 'x')), nil
			}
			return work.Done(), nil
		}})
	return w
}

// open counts the open items.
func (l *load) open() int {
	n := 0
	l.client.View().EachWork(func(w *controlclient.WorkItem) bool {
		if w.Kind == loadKind {
			n++
		}
		return true
	})
	return n
}

// exchanges is how many turns a node has had at the table of work, by its metrics.
func (l *load) exchanges(of *telemetry.Metrics) float64 {
	l.t.Helper()
	families, err := of.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "shoal_work_exchanges_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	l.t.Fatal("turns are not counted")
	return 0
}

// run runs a small list, and returns the time from its launch to its end.
func (l *load) run(web *synthweb.Web) time.Duration {
	l.t.Helper()
	who, err := l.caller.Whoami(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	money := controlclient.AdjustWallet{Customer: who, Entry: l.ids.New(), Amount: 1_000_000}
	if _, err := controlclient.Do(l.t.Context(), l.client, money, nil); err != nil {
		l.t.Fatal(err)
	}
	order := api.ProductOrder(l.caller, slices.Collect(web.URLs(runPages)))
	query, err := order.Query(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	began := time.Now()
	launched, err := l.caller.RunList(l.t.Context(), query, order.Body())
	if err != nil {
		l.t.Fatal(err)
	}
	job, _, err := l.caller.Finished(l.t.Context(), launched)
	if err != nil || job.TotalRequests != runPages {
		l.t.Fatalf("%+v, %v", job, err)
	}
	return time.Since(began)
}

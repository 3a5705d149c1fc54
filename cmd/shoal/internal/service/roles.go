package service

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/billing"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/crash"
)

// Bounds of a stop. A standalone process lets its fetcher finish what is under way. Then it lets
// each role behind the fetcher finish what is in the log.
const (
	aloneStop     = 5 * time.Second
	drainPatience = 2 * time.Second
)

func (n *node) opsPart() lifecycle.Part {
	serve := func(ctx context.Context) error { return n.operators().Serve(ctx, n.ops) }
	return lifecycle.Part{Name: opsModule, Run: serve}
}

func (n *node) openEgress(context.Context) (err error) {
	n.egress, err = egress.New(egress.Config{Allow: n.config.EgressAllow, Origins: n.config.Origins,
		Metrics: n.metrics})
	if err != nil {
		return err
	}
	n.closeLater(func() error { n.egress.Close(); return nil })
	return nil
}

func (n *node) buildReader(context.Context) error {
	n.reader = fetcher.NewReader(fetcher.ReaderConfig{Dir: filepath.Join(n.config.Data,
		"unreadable"),
		Clock: n.clock, Logger: n.forRole("reading"), Metrics: n.metrics})
	return nil
}

func (n *node) buildWeb(ctx context.Context) (err error) {
	if n.web, err = n.openWeb(ctx); err != nil {
		return err
	}
	n.web.Measure(n.metrics)
	n.closeLater(func() error { n.web.Close(); return nil })
	return nil
}

func (n *node) buildRates(context.Context) error {
	n.rates = ecb.NewSource(n.egress, ecb.Config{Shared: n.services.cache, Clock: n.clock,
		Logger: n.forRole("rates")})
	return nil
}

func (n *node) buildWork(context.Context) error {
	n.worker = work.New(work.Config{Table: controlclient.Work(n.control.Client(), n.name, n.boot),
		IDs: n.ids, Clock: n.clock, Logger: n.forRole("work"), Metrics: n.metrics,
		Spare: n.control.Spare, Point: n.point})
	return nil
}

func (n *node) workPart() lifecycle.Part {
	return lifecycle.Part{Name: workModule, Run: n.worker.Run}
}

func (n *node) buildControlPlane(context.Context) error {
	n.worker.Add(n.control.Orphans())
	n.worker.Add(n.control.Backups())
	n.worker.Add(n.control.Blobs())
	return nil
}

func (n *node) buildBilling(context.Context) error {
	n.billing = billing.New(billing.Config{Log: n.records, Settle: n.control.Client().Settle,
		Logger: n.forRole(identity.Billing), Metrics: n.metrics, Tracer: n.tracer, Clock: n.clock,
		Point:  n.point,
		Reader: n.reader.For(identity.Billing)})
	n.worker.Add(billing.NewDaily(billing.DailyConfig{Control: n.control.Client(),
		History: controlclient.NewHistory(n.services.store), Store: n.services.store,
		Clock: n.clock, Logger: n.forRole(identity.Billing),
		Metrics: n.metrics}).Kind())
	return nil
}

func (n *node) billingPart() lifecycle.Part {
	return lifecycle.Part{Name: identity.Billing, Run: n.billing.Run,
		Idle:     n.services.idle(stream.Receipts),
		Patience: drainPatience}
}

func (n *node) buildIngest(context.Context) error {
	n.ingest = ingest.New(ingest.Config{Log: n.records, Store: n.services.store,
		Control: ingest.FromClient(n.control.Client()), Logger: n.forRole(identity.Ingest),
		Metrics: n.metrics,
		Tracer:  n.tracer, Clock: n.clock, Point: n.point, Reader: n.reader.For(identity.Ingest)})
	client := n.control.Client()
	n.worker.Add(ingest.Expiry(ingest.ExpiryConfig{Store: n.services.store, Safe: client.SafeTime,
		// The state does not know a scraper that a restore undid, but may know it again.
		Reruns: func(id ids.ID) bool {
			scraper := client.View().Scraper(id)
			return scraper == nil || scraper.ListRun
		}, Point: n.point}))
	history := controlclient.NewHistory(n.services.store)
	n.worker.Add(ingest.Removal(ingest.RemovalConfig{Client: client, Store: n.services.store,
		History: history, Clock: n.clock, Point: n.point}))
	n.worker.Add(ingest.Wipe(ingest.WipeConfig{Client: client, Store: n.services.store,
		Safe: client.SafeTime, Point: n.point}))
	importing := ingest.ImportConfig{Client: client, Store: n.services.store, History: history,
		IDs: n.ids, Clock: n.clock, Dir: n.config.Data, Disk: n.disk,
		Point: n.point}
	if n.services.blobs != nil { // a nil pointer would make a non-nil interface
		importing.Files = n.services.blobs
	}
	n.worker.Add(ingest.Import(importing))
	n.worker.Add(ingest.Merge(importing))
	reading := ingest.ReExtractConfig{Client: client, Store: n.services.store, History: history,
		IDs: n.ids, Clock: n.clock, Reader: n.reader.For(identity.Ingest), Point: n.point,
		Logger: n.forRole(identity.Ingest)}
	if n.services.blobs != nil { // a nil pointer would make a non-nil interface
		reading.Bodies = n.services.blobs
	}
	if n.rates != nil { // set on nodes that fetch or serve the API
		reading.Rates = n.rates
	}
	n.worker.Add(ingest.ReExtract(reading))
	n.worker.Add(ingest.Match(importing))
	n.worker.Add(ingest.Catalogue(ingest.CatalogueConfig{Client: client, Files: importing.Files,
		Point: n.point}))
	n.worker.Add(ingest.Erasure(ingest.ErasureConfig{Client: client, Point: n.point}))
	n.worker.Add(ingest.Retention(ingest.RetentionConfig{View: client.View, Point: n.point,
		History: history, Store: n.services.store}))
	n.worker.Add(ingest.LinkStates(ingest.LinkStatesConfig{View: client.View, Point: n.point,
		History: history, Store: n.services.store}))
	return nil
}

func (n *node) ingestPart() lifecycle.Part {
	return lifecycle.Part{Name: identity.Ingest, Run: n.ingest.Run,
		Idle:     n.services.idle(stream.Pages),
		Patience: drainPatience}
}

func (n *node) buildFetcher(context.Context) error {
	asked, err := n.openModel()
	if err != nil {
		return err
	}
	config := &n.config
	poison := crash.PoisonFromEnv(os.Getenv)
	settings := fetcher.Config{Node: n.name, Boot: n.boot, Log: n.records,
		Control: fetcher.FromClient(n.control.Client()), Web: n.web, Model: asked, Rates: n.rates,
		IDs: n.ids, Disk: n.disk,
		Clock: n.clock, ShardOf: shardBy(n.records.Partitions()), Workers: config.FetchWorkers,
		Timeout: config.FetchTimeout, StopWithin: config.stopWithin(),
		Pace:    fetcher.Pace{Rate: config.HostRate, Connections: config.HostConnections},
		MaxPace: fetcher.Pace{Rate: config.MaxHostRate, Connections: config.MaxHostConnections},
		Logger:  n.forRole(identity.Fetcher), Metrics: n.metrics, Tracer: n.tracer, Point: n.point,
		Reader: n.reader, Reading: func(p extract.Page) { poison(p.URL) },
		BodyQuota: int64(config.BodyMB) << 20}
	if n.services.blobs != nil { // a nil pointer would make a non-nil interface
		settings.Bodies = n.services.blobs
	}
	n.fetcher = fetcher.New(settings)
	return nil
}

func (n *node) fetcherPart() lifecycle.Part {
	return lifecycle.Part{Name: identity.Fetcher, Run: n.fetcher.Run}
}

func (n *node) buildAPI(context.Context) (err error) {
	if err := n.buildMail(); err != nil {
		return err
	}
	n.worker.Add(apiserver.Webhooks(apiserver.WebhookConfig{Sender: n.egress,
		Client: n.control.Client(), Clock: n.clock, Logger: n.forRole("webhooks"),
		Metrics: n.metrics, Point: n.point}))
	config, on := &n.config, n.services
	on.watchGroups()
	payments, err := n.openPayments()
	if err != nil {
		return err
	}
	refused := apiserver.CountRefusedEndings(n.metrics)
	if payments != nil {
		n.worker.Add(apiserver.Contracts(apiserver.ContractsConfig{Client: n.control.Client(),
			Payments: payments, Logger: n.forRole("contracts"), Refused: refused,
			Point: n.point}))
	}
	issuer, err := n.openOpenID()
	if err != nil {
		return err
	}
	certificate, err := config.TLS.open()
	if err != nil {
		return err
	}
	settings := apiserver.Config{Client: n.control.Client(),
		Operator: n.control.Operator(),
		Store:    on.store, Guard: n.egress, ExchangeRates: n.rates, Limiter: on.cache,
		Values: on.cache, Lag: on.lag,
		Recount: n.recount, Node: n.name, Boot: n.boot, Clock: n.clock, IDs: n.ids,
		DataDir: config.Data, Disk: n.disk, Reader: n.reader.For(identity.APIServer),
		Certificate:  certificate,
		NoRateLimits: config.NoRateLimits, Rates: config.Calls.Rates,
		CustomerRates:  config.Calls.CustomerRates,
		TrustedProxies: config.Calls.TrustedProxies, MaxHostRate: config.MaxHostRate,
		MaxHostConnections: config.MaxHostConnections, SearchEngines: config.SearchEngines,
		UserAgreement: config.UserAgreement, Payments: payments, OpenID: issuer,
		Plans:     config.Plans,
		PublicURL: config.PublicURL, Mails: config.Mail.Address != "", Once: config.Once,
		StopGrace: config.StopGrace, FinishWithin: config.stopWithin(), Operators: n.admin,
		Logger: n.forRole(identity.APIServer), Metrics: n.metrics, Tracer: n.tracer}
	if on.blobs != nil { // a nil pointer would make a non-nil interface
		settings.Blobs = on.blobs
	}
	if n.api, err = apiserver.New(settings); err != nil {
		return err
	}
	n.worker.Add(n.api.DueRuns(n.point))
	n.worker.Add(n.api.KeptExports(n.point))
	n.worker.Add(n.api.Changes(n.point))
	n.worker.Add(n.api.Harvests(n.egress, config.HostRate, n.point))
	return nil
}

func (n *node) apiPart() lifecycle.Part {
	return lifecycle.Part{Name: identity.APIServer, Run: n.serveAPI}
}

// recount compares the ledger with the page records, for an operator.
func (n *node) recount(ctx context.Context,
	view *controlclient.View) iter.Seq2[apiserver.RecountedRun, error] {
	return func(yield func(apiserver.RecountedRun, error) bool) {
		history := controlclient.NewHistory(n.services.store)
		for c, err := range billing.Recount(ctx, view, history, n.services.store) {
			run := apiserver.RecountedRun{JobID: c.Job, CustomerRef: c.Customer, EntryID: c.Entry,
				LedgerMicros:  c.LedgerMicros,
				RecountMicros: c.RecountMicros, LedgerPages: c.LedgerPages,
				RecountPages: c.RecountPages,
				LedgerItems:  c.LedgerItems, RecountItems: c.RecountItems, Equal: c.Equal(),
				Unreadable: c.Unread != nil, Undone: c.Undone}
			if c.Unread != nil {
				n.forRole(identity.APIServer).Error("a run cannot be recounted", "job", c.Job,
					"customer", c.Customer, "error", c.Unread)
			}
			if !yield(run, err) {
				return
			}
		}
	}
}

func (n *node) readyPart() lifecycle.Part {
	return lifecycle.Part{Name: readyModule, Run: n.tellReady}
}

// tellReady reports that all parts before it have started.
func (n *node) tellReady(ctx context.Context) error {
	n.started.Store(true)
	if n.config.Ready != nil {
		n.config.Ready("")
	}
	<-ctx.Done()
	return nil
}

// serveAPI makes the self-hosting customer's key before the first call is accepted.
func (n *node) serveAPI(ctx context.Context) error {
	if n.config.SelfKey {
		if _, err := apiserver.SelfKey(ctx, n.control.Client(), n.ids, n.config.Data); err != nil {
			return err
		}
	}
	n.started.Store(true)
	if n.config.Ready != nil {
		n.config.Ready(n.listener.Addr().String())
	}
	return n.api.Serve(ctx, n.listener)
}

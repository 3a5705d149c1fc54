// Package apiserver is the role that serves the API: every operation of the specification over
// HTTP. It owns the server, the list of resources (catalog.go) and local sign-in. All durable data
// is in the control plane and the row store.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/agents"
	"shoal.dev/shoal/apiserver/api/admin"
	"shoal.dev/shoal/apiserver/api/signin"
	"shoal.dev/shoal/apiserver/api/uploads"
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/grants"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/oidc"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/apiserver/portal"
	"shoal.dev/shoal/apiserver/reference"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/telemetry"
)

// Bounds of the server.
const (
	maxHeader      = 32 << 10 // address and header lines together, bytes
	maxConnections = 4_096    // per listener
	// for address and header lines, and for the first byte of a connection
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second // for a body; large ones set their own pace
	idleTimeout   = 2 * time.Minute  // between requests
	// cutOffTimeout is how long calls that a stop cuts off have to undo what they began.
	cutOffTimeout = 2 * time.Second
)

// DefaultFinishWithin is the default of Config.FinishWithin.
const DefaultFinishWithin = 5 * time.Second

// Config configures a server. Client, Store, Clock, IDs, Guard, DataDir and Logger must be set.
type Config struct {
	Client  client.Client
	Store   rowstore.Store
	Clock   clock.Clock
	IDs     ids.Source
	Guard   launch.Guard // decides what may be crawled: the egress client
	DataDir string       // holds the key of the local issuer
	Listen  string       // HOST:PORT, for Run
	// Certificate encrypts customers' connections. nil: they are in the clear, behind a proxy that
	// encrypts or on the loopback. Operators' connections are always in the clear.
	Certificate *Certificate
	// Operators is the operators' listener, which Serve closes. It serves everything; the
	// customers' listener then serves neither /metrics nor /api/admin. nil: one listener serves
	// everything, and those paths need an administrator's credential as always.
	Operators net.Listener
	// NoRateLimits turns decision 6 off; Rates overrides its figures, by class.
	NoRateLimits bool
	Rates        map[string]Rate
	// TrustedProxies are the ranges of proxies whose Forwarded and X-Forwarded-For headers are
	// believed.
	TrustedProxies []netip.Prefix
	// CustomerRates limit all credentials of a customer together, by class. The default is ten
	// times the figure of one credential.
	CustomerRates map[string]Rate
	// ExchangeRates are the rates of currency rules; nil: the bundled table.
	ExchangeRates ecb.Rates
	// Limiter counts calls and open streams. A shared one counts for all servers; nil: this server
	// counts alone.
	Limiter cache.Limiter
	// Values keeps samples for an hour. A shared one keeps them for all servers; nil: for this one.
	Values cache.Values
	// MaxHostRate (requests a second) and MaxHostConnections are the highest politeness settings
	// that a scraper may have for a host.
	MaxHostRate        float64
	MaxHostConnections int
	// StopGrace is how long a stopping server still serves, while /readyz says 503 and every answer
	// closes its connection. It must exceed the time in which a load balancer notices, and is 0
	// without one.
	StopGrace time.Duration
	// FinishWithin is how long calls under way may take after that; then they are cut off.
	FinishWithin time.Duration
	// Lag returns how many records each topic holds, by topic name; nil: unknown.
	Lag func(ctx context.Context) map[string]int64
	// Recount compares the ledger entry of every closed run in a view with its page records; nil:
	// this process cannot.
	Recount func(ctx context.Context, view *client.View) iter.Seq2[RecountedRun, error]
	// Operator carries out administrators' actions on the cluster; nil: this process cannot.
	Operator client.Operator
	// SearchEngines are the engines that SEARCH_ENGINE_SEARCH may ask, the default first.
	SearchEngines []model.SearchEngine
	// OpenID is an issuer whose tokens sign in, beside the local issuer's; nil: none.
	OpenID *OpenID
	// PublicURL is where browsers find the service: https://HOST; "": unknown. E-mails contain it,
	// and programs see it as the issuer of their tokens.
	PublicURL string
	// Mails says that this or another process sends e-mails to customers.
	Mails   bool
	HashKiB int   // memory of a password hash; 64 MiB by default
	Once    *Once // signs in the person who has its link; nil: none
	// UserAgreement is the HTML document that customers agree to; nil: none.
	UserAgreement []byte
	// Plans is a catalogue of plans, JSON; nil: the built-in one. It applies, and is proposed to
	// the cluster, only if the settings have no plans.
	Plans []byte
	// Payments takes customers' money; nil: there are no top-ups.
	Payments payment.Provider
	// Node and Boot identify the process in the control plane.
	Node string
	Boot ids.ID
	// Blobs holds kept exports, uploads and parts of files; nil: there are none.
	Blobs uploads.Blobs
	// Disk is the disk of DataDir. Bodies leave its floor free, or 1 GiB if it is nil.
	Disk *telemetry.Disk
	// Reader guards the reading of pages and sitemaps; nil: one that keeps none.
	Reader *reading.Guard
	Logger *slog.Logger
	// Metrics is what the server counts in and /metrics shows; nil: the server makes its own.
	Metrics *telemetry.Metrics
	Tracer  *telemetry.Tracer // nil: no traces
}

// RecountedRun is the ledger entry of a run and the recount of its page records.
type RecountedRun = admin.RecountedRun

// OpenID configures an issuer. Its Clock and Logger are the server's.
type OpenID = oidc.Config

// CheckIssuer reports why an address cannot be that of an OpenID Connect issuer.
func CheckIssuer(address string) error { return oidc.CheckIssuer(address) }

// CheckOpenIDClient reports why id cannot be the service's client id at an issuer.
func CheckOpenIDClient(id string) error { return oidc.CheckClient(id) }

// Rate allows Count calls in each Per, and a burst of Count.
type Rate = limits.Figure

// Server serves the API. Serve may be called once.
type Server struct {
	config  Config
	touches *auth.Touches
	// plans are the plans in effect, ownPlans those that the process was started with.
	plans    *plans.Source
	ownPlans *plans.Catalogue
	openID   *oidc.Issuer // nil: there is none
	// accounts signs people in, here or at the issuer; nil if browsers can do neither.
	accounts *accounts.Service
	// signsIn is the browser sign-in at the issuer; nil: accounts have passwords here.
	signsIn *signin.OpenID
	// grants let programs call on people's behalf; nil if people do not sign in here.
	grants *grants.Service
	// portal is for browsers with a session; nil if there are no accounts.
	portal *portal.Portal
	// reference shows the API's description to people.
	reference *reference.Reference
	chain     *operation.Chain
	agents    *agents.Gateway
	// customers and operators serve the requests of their own listeners.
	customers, operators fasthttp.RequestHandler
	stopping             atomic.Bool
	refused              prometheus.Counter // connections

	endWork, endStreams context.CancelFunc
}

// setDefaults fills in the optional fields.
func (c *Config) setDefaults() {
	if c.FinishWithin <= 0 {
		c.FinishWithin = DefaultFinishWithin
	}
	if c.Lag == nil {
		c.Lag = func(context.Context) map[string]int64 { return map[string]int64{} }
	}
	if c.Recount == nil {
		c.Recount = func(context.Context, *client.View) iter.Seq2[RecountedRun, error] {
			return func(yield func(RecountedRun, error) bool) {
				yield(RecountedRun{}, fault.New(fault.Unavailable, "this process cannot recount"))
			}
		}
	}
	if c.Reader == nil {
		c.Reader = reading.New("apiserver", reading.Config{Clock: c.Clock, Logger: c.Logger})
	}
	if c.Operator == nil {
		c.Operator = noOperator{}
	}
	if c.ExchangeRates == nil {
		c.ExchangeRates = ecb.Bundled()
	}
	if c.Limiter == nil {
		c.Limiter = cache.NewLocal(c.Clock)
	}
	if c.Values == nil {
		c.Values = cache.NewLocal(c.Clock)
	}
	if c.Metrics == nil {
		c.Metrics = telemetry.NewMetrics()
	}
}

// New makes a server.
func New(config Config) (*Server, error) {
	issuer, err := auth.OpenIssuer(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	config.setDefaults()
	catalogue := plans.Standard()
	if config.Plans != nil {
		if catalogue, err = plans.Parse(config.Plans); err != nil {
			return nil, fmt.Errorf("apiserver: %w", err)
		}
	}
	m := newMetrics(config.Metrics)
	s := &Server{config: config, refused: m.refused, plans: plans.NewSource(catalogue),
		ownPlans: catalogue,
		touches:  auth.NewTouches(config.Client, config.Clock, config.Logger)}
	if config.OpenID != nil {
		from := *config.OpenID
		from.Clock, from.Logger = config.Clock, config.Logger
		if s.openID, err = oidc.New(from); err != nil {
			return nil, fmt.Errorf("apiserver: %w", err)
		}
	}
	limiter, err := newLimiter(config)
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	streams := &limits.Streams{Cache: config.Limiter, Unbounded: config.NoRateLimits}
	measure(config.Metrics, streams, s.openID)
	measureCertificate(config.Metrics, config.Certificate)
	s.chain = &operation.Chain{
		Auth: &auth.Authenticator{Client: config.Client, Issuer: issuer, OpenID: s.openID,
			Touches: s.touches, Clock: config.Clock, IDs: config.IDs},
		Limits: limiter, Streams: streams, Plans: s.plans,
		Clock: config.Clock, IDs: config.IDs, Logger: config.Logger, Observer: m,
		Tracer: config.Tracer, SpoolDir: config.DataDir, Disk: config.Disk,
		Proxies: config.TrustedProxies,
	}
	if err := s.openPeople(issuer, m); err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	if s.reference, err = reference.New(); err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	s.chain.Work, s.endWork = context.WithCancel(context.Background())
	s.chain.Streaming, s.endStreams = context.WithCancel(s.chain.Work)
	ops := s.operations()
	measureAgents(config.Metrics, s.agents)
	s.operators = s.chain.Handler(ops)
	s.customers = s.operators
	if config.Operators != nil {
		s.customers = s.chain.Handler(slices.DeleteFunc(slices.Clone(ops), isForOperators))
	}
	return s, nil
}

// isForOperators reports whether an operation is served only to operators, if they have their own
// listener (decision 61).
func isForOperators(op *operation.Operation) bool {
	path := op.Routes[0].Path
	return path == "/metrics" || strings.HasPrefix(path, "/api/admin/")
}

// noOperator stands in for a missing Config.Operator: it refuses everything.
type noOperator struct{}

var errNoOperator = fault.New(fault.Unavailable, "this process cannot operate the cluster")

func (noOperator) Backup(context.Context, io.Writer) error { return errNoOperator }

func (noOperator) RowsBytes(context.Context) (int64, error) { return 0, errNoOperator }

func (noOperator) BackupRows(context.Context, io.Writer) error { return errNoOperator }

func (noOperator) Restore(context.Context, io.Reader, client.RestoreOptions) (client.Restored,
	error) {
	return client.Restored{}, errNoOperator
}

func (noOperator) Backups(context.Context) ([]client.KeptBackup, error) {
	return nil, errNoOperator
}

func (noOperator) RestoreKept(context.Context, string, client.RestoreOptions) (client.Restored,
	error) {
	return client.Restored{}, errNoOperator
}

func (noOperator) RemoveNode(context.Context, string) error { return errNoOperator }

func newLimiter(config Config) (limits.Limiter, error) {
	if config.NoRateLimits {
		return limits.Off{}, nil
	}
	if err := errors.Join(CheckRates(config.Rates),
		CheckCustomerRates(config.CustomerRates)); err != nil {
		return nil, err
	}
	figures, customers := limits.Defaults(), map[limits.Class]limits.Figure{}
	for class, rate := range config.Rates {
		figures[limits.Class(class)] = rate
	}
	for class, rate := range config.CustomerRates {
		customers[limits.Class(class)] = rate
	}
	return &limits.Buckets{Cache: config.Limiter, Figures: figures, Customers: customers,
		Set: (&setFigures{of: config.Client}).now}, nil
}

// CheckRates refuses unknown classes and figures that are not positive.
func CheckRates(rates map[string]Rate) error {
	known := limits.Classes()
	for _, class := range slices.Sorted(maps.Keys(rates)) {
		if !slices.Contains(known, limits.Class(class)) {
			return fmt.Errorf("%.50q is none of %s", class, strings.Join(rateClasses(), ", "))
		}
		if rate := rates[class]; rate.Count < 1 || rate.Per <= 0 {
			return fmt.Errorf("%s: %d calls in %v: want positive figures", class, rate.Count,
				rate.Per)
		}
	}
	return nil
}

// CheckCustomerRates is CheckRates for the figures of customers. Calls without a credential have no
// customer, so that class is refused.
func CheckCustomerRates(rates map[string]Rate) error {
	if _, told := rates[string(limits.Anonymous)]; told {
		return fmt.Errorf("%s: calls without a credential have no customer", limits.Anonymous)
	}
	return CheckRates(rates)
}

// rateClasses lists the classes that have figures, in alphabetical order.
func rateClasses() []string {
	var names []string
	for _, class := range limits.Classes() {
		names = append(names, string(class))
	}
	return names
}

// operations is everything that is served. The descriptions cover their own operations, too, so
// they are made when first asked for.
func (s *Server) operations() []*operation.Operation {
	var ops []*operation.Operation
	for _, r := range s.catalog(
		sync.OnceValues(func() ([]byte, error) { return document(ops, s.ceilings) }),
		sync.OnceValues(func() ([]byte, error) { return agentDocument(ops, s.ceilings) })) {
		ops = append(ops, r.Operations()...)
	}
	s.agents = agents.New(agents.Config{Chain: s.chain, Client: s.config.Client,
		History: client.NewHistory(s.config.Store), Clock: s.config.Clock}, ops)
	ops = append(ops, s.agents.Operations()...)
	return ops
}

// Run listens and serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("apiserver: %w", err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l and Config.Operators until ctx ends, and closes both. It then reports itself
// unready, serves on for StopGrace, and accepts no more calls. It ends streams, telling them to
// reconnect elsewhere, and waits FinishWithin for calls under way. When it returns nil, all its
// goroutines have ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.endWork()
	from := callers{proxies: s.config.TrustedProxies, unlimited: s.config.NoRateLimits,
		logger: s.config.Logger, refused: s.refused}
	open := listeners{listen(l, from, s.config.Clock)}
	if s.config.Certificate != nil {
		open[0].secure = s.config.Certificate.config(s.config.Logger)
	}
	if s.config.Operators != nil {
		open = append(open, listen(s.config.Operators, from, s.config.Clock))
		open[1].operators = true
	}
	server := s.newServer()
	server.ConnState = follow
	behind, endBehind := context.WithCancel(context.WithoutCancel(ctx))
	defer endBehind()
	var background sync.WaitGroup
	background.Go(func() { s.touches.Run(behind) })
	if s.openID != nil {
		background.Go(func() { s.openID.Run(behind) })
	}
	if !s.bringPlans(ctx) {
		background.Go(func() { s.keepBringingPlans(behind) })
	}
	served := open.serve(server)

	var err error
	select {
	case err = <-served:
		_ = open.close() // it has failed already
	case <-ctx.Done():
		s.stopping.Store(true)
		select {
		case err = <-served: // it has failed meanwhile
			_ = open.close()
		case <-s.config.Clock.After(s.config.StopGrace):
			err = s.stop(server, open)
			err = errors.Join(err, <-served)
		}
	}
	s.endStreams()
	s.endWork()
	s.agents.Close()
	cutOff, cancel := context.WithTimeout(context.Background(), cutOffTimeout)
	defer cancel()
	err = errors.Join(err, s.chain.Wait(cutOff))
	endBehind()
	background.Wait()
	if err != nil {
		return fmt.Errorf("apiserver: %w", err)
	}
	return nil
}

// stop ends the listeners, then streams, then calls, then connections.
func (s *Server) stop(server *fasthttp.Server, open listeners) error {
	closed := open.close()
	s.endStreams()
	open.end((*conn).idle)
	finish, cancel := context.WithTimeout(context.Background(), s.config.FinishWithin)
	defer cancel()
	err := server.ShutdownWithContext(finish)
	if errors.Is(err, context.DeadlineExceeded) {
		s.config.Logger.Warn("calls are cut off: the server stops")
		err = nil
	}
	open.end(func(*conn) bool { return true })
	return errors.Join(closed, err)
}

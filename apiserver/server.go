// Package apiserver is the role that serves the API: every operation of the specification over
// HTTP. It owns the server, the list of resources (catalog.go) and sign-in on the spot. What it
// answers is in the control plane and the row store; it keeps nothing that may not be lost.
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
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/telemetry"
)

// Bounds of the server.
const (
	maxHeader      = 32 << 10 // address and header lines together, bytes
	maxConnections = 4_096    // by one listener
	// of address and header lines, and of the first byte of a connection
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second // of a body; large ones set a pace of their own
	idleTimeout   = 2 * time.Minute  // between requests
	// cutOffTimeout is what calls that are cut off by a stop have to take back what they began.
	cutOffTimeout = 2 * time.Second
)

// DefaultFinishWithin is Config.FinishWithin unless told.
const DefaultFinishWithin = 5 * time.Second

// Config is what a server needs. Client, Store, Clock, IDs, Guard, DataDir and Log must be set.
type Config struct {
	Client  client.Client
	Store   rowstore.Store
	Clock   clock.Clock
	IDs     ids.Source
	Guard   launch.Guard // what may be crawled: the egress client
	DataDir string       // holds the key of the local issuer
	Listen  string       // HOST:PORT, for Run
	// Certificate encrypts customers' connections; nil: they are in the clear, for a proxy that
	// encrypts or on the loopback. Operators' are in the clear.
	Certificate *Certificate
	// Operators is a listener for them, which Serve closes. It serves everything, and customers'
	// listeners neither /metrics nor /api/admin. nil: all is served to all, and needs an
	// administrator's credential as ever.
	Operators net.Listener
	// NoRateLimits turns decision 6 off; Rates changes its figures, by class.
	NoRateLimits bool
	Rates        map[string]Rate
	// TrustedProxies are the ranges of proxies that say in Forwarded or X-Forwarded-For who calls,
	// and are believed.
	TrustedProxies []netip.Prefix
	// CustomerRates are the figures of a customer's credentials together, by class: ten times a
	// credential's unless told.
	CustomerRates map[string]Rate
	// ExchangeRates are what currency rules convert by; the bundled table when nil.
	ExchangeRates ecb.Rates
	// Limiter counts calls and open streams: for all servers together when it is shared, for this
	// one when nil.
	Limiter cache.Limiter
	// Values keeps samples for an hour: for all servers when it is shared, for this one when nil.
	Values cache.Values
	// MaxHostRate (requests a second) and MaxHostConnections are the most that a scraper may ask of
	// a host.
	MaxHostRate        float64
	MaxHostConnections int
	// StopGrace is for how long a stopping server serves on, while /readyz says 503 and every
	// answer asks for its connection to be closed. It is longer than a load balancer takes to look
	// elsewhere, and 0 when nothing stands before it.
	StopGrace time.Duration
	// FinishWithin is how long calls under way may take then; after it they are cut off.
	FinishWithin time.Duration
	// Lag tells operators how many records each topic holds, by its name; nil: nothing is known.
	Lag func(ctx context.Context) map[string]int64
	// Recount holds the ledger of every closed run in a view against its page records; nil: not
	// from here.
	Recount func(ctx context.Context, view *client.View) iter.Seq2[RecountedRun, error]
	// Operator is what administrators do to the cluster; nil: not from here.
	Operator client.Operator
	// SearchEngines are what SEARCH_ENGINE_SEARCH may ask, the default first.
	SearchEngines []model.SearchEngine
	// OpenID is an OpenID Connect issuer whose tokens sign in, beside the local one's; nil: none.
	OpenID *OpenID
	// PublicURL is where browsers find the service: https://HOST; "": unknown. E-mails name it, and
	// programs find it as the issuer of their tokens.
	PublicURL string
	// Mails says that e-mails are sent to customers, by this process or another.
	Mails   bool
	HashKiB int   // memory that a password's hash takes; 64 MiB unless told
	Once    *Once // signs a person in who has its link; nil: there is none
	// UserAgreement is an HTML document that customers agree with; nil: there is none.
	UserAgreement []byte
	// Plans is a catalogue of plans, JSON; nil: the one that comes with the program. It holds, and
	// is brought to the cluster, where the settings have none.
	Plans []byte
	// Payments is who takes customers' money; nil: nobody does, and there are no top-ups.
	Payments payment.Provider
	// Node and Boot name the process in the control plane.
	Node string
	Boot ids.ID
	// Blobs is where kept exports, uploads and parts of files are; nil: none are.
	Blobs uploads.Blobs
	// Disk is that of DataDir, whose floor bodies leave free, if it has one; nil: 1 GiB stays free.
	Disk   *telemetry.Disk
	Logger *slog.Logger
	// Metrics is where the server counts, and what /metrics answers; metrics of its own when nil.
	Metrics *telemetry.Metrics
	Tracer  *telemetry.Tracer // nil: no traces
}

// RecountedRun is one run's ledger entry and what its page records say.
type RecountedRun = admin.RecountedRun

// OpenID says which issuer, and the way to it. Its Clock and Logger are the server's.
type OpenID = oidc.Config

// CheckIssuer says why an address cannot be that of an OpenID Connect issuer.
func CheckIssuer(address string) error { return oidc.CheckIssuer(address) }

// CheckOpenIDClient says why an issuer cannot sign browsers in by this name of the service.
func CheckOpenIDClient(id string) error { return oidc.CheckClient(id) }

// Rate allows Count calls in each Per, and as many at once.
type Rate = limits.Figure

// Server serves the API. Each serves once.
type Server struct {
	config  Config
	touches *auth.Touches
	// plans are those that hold, ownPlans those that the process was started with.
	plans    *plans.Source
	ownPlans *plans.Catalogue
	openID   *oidc.Issuer // nil: there is none
	// accounts sign in here, or at the OpenID Connect issuer; nil where browsers do neither.
	accounts *accounts.Service
	// signsIn is that issuer for browsers; nil: accounts have passwords here.
	signsIn *signin.OpenID
	// grants let programs call in their stead; nil where people do not sign in here.
	grants *grants.Service
	// portal is for browsers with a session; nil where there are no accounts.
	portal *portal.Portal
	// reference shows people what the API's description says.
	reference *reference.Reference
	chain     *operation.Chain
	agents    *agents.Gateway
	// customers and operators serve what comes by the listeners of each.
	customers, operators fasthttp.RequestHandler
	stopping             atomic.Bool
	refused              prometheus.Counter // connections

	endWork, endStreams context.CancelFunc
}

// setDefaults fills in what may be left out.
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

// isForOperators says whether an operation is none of a customer's, where operators have a listener
// (decision 61).
func isForOperators(op *operation.Operation) bool {
	path := op.Routes[0].Path
	return path == "/metrics" || strings.HasPrefix(path, "/api/admin/")
}

// noOperator is the operator of a server that was given none.
type noOperator struct{}

var errNoOperator = fault.New(fault.Unavailable, "this process cannot operate the cluster")

func (noOperator) Backup(context.Context, io.Writer) error { return errNoOperator }

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

// CheckRates refuses figures of classes that there are not, and figures that are not positive.
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

// CheckCustomerRates is CheckRates for the figures of customers, who have none of calls without a
// credential.
func CheckCustomerRates(rates map[string]Rate) error {
	if _, told := rates[string(limits.Anonymous)]; told {
		return fmt.Errorf("%s: calls without a credential have no customer", limits.Anonymous)
	}
	return CheckRates(rates)
}

// rateClasses are the classes of calls that have figures, in alphabetical order.
func rateClasses() []string {
	var names []string
	for _, class := range limits.Classes() {
		names = append(names, string(class))
	}
	return names
}

// operations is everything that is served. The descriptions, which describe themselves too, are
// made when they are first asked for.
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

// Serve serves on l and Config.Operators, which it closes, until ctx ends. Then it is not ready any
// more, serves on for StopGrace and takes no new call. It tells streams to come back elsewhere and
// ends them, and waits for calls under way, for FinishWithin. What goroutines there are have ended
// when it returns without an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.endWork()
	from := callers{proxies: s.config.TrustedProxies, unlimited: s.config.NoRateLimits,
		log: s.config.Logger, refused: s.refused}
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
		_ = open.close() // it failed already
	case <-ctx.Done():
		s.stopping.Store(true)
		select {
		case err = <-served: // it failed meanwhile
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

// stop ends the listener, then streams, then calls, then connections.
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

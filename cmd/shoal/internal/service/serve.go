package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// Config is what a process of the service is told. Run makes the roles from it.
type Config struct {
	Data   string // directory, made when missing
	Listen string // HOST:PORT of the API; port 0 takes a free one
	Roles  []string

	Cluster   *ClusterConfig // nil: the process is a cluster of its own
	Services  ServicesConfig
	Capacity  uint32 // the fetcher's weight when shards are dealt out
	OpsListen string // HOST:PORT of metrics and health; "": none
	// AdminListen is HOST:PORT of the whole API; /api/admin and /metrics are served there alone then. "": with the API.
	AdminListen string
	LogStderr   bool // log JSON lines to stderr, instead of text into the data directory
	LogLevel    slog.Level
	SelfKey     bool // make the self-hosting customer and its key
	Times       Times

	OpsProfiles bool // profiles at OpsListen, too
	Traces      Traces

	Model ModelFlags

	EgressAllow []netip.Prefix    // private ranges that may be reached all the same
	Origins     map[string]string // host or *.suffix → IP:PORT that is dialled instead of asking DNS

	Proxies  string // file that names the proxies of tier super; "": none
	Chromium string // path of the browser of tier render; "": none
	// ChromiumNamed says that an operator named it: without it nothing is served. One that was only found may be left out.
	ChromiumNamed bool

	HostRate           float64 // request starts per second that a host gets, unless a scraper says otherwise
	HostConnections    int
	MaxHostRate        float64 // what a scraper may ask for
	MaxHostConnections int
	NoRateLimits       bool // of API calls
	Calls              CallFlags
	RebindServices     bool // see controlplane.Services
	SearchEngines      []model.SearchEngine
	FetchWorkers       int // requests of the fetcher under way, at most; 0: the fetcher's own measure

	// SnapshotEntries is after how many Raft entries a snapshot is taken; it is looked at every so many milliseconds, too.
	// 0: the control plane's own measure.
	SnapshotEntries uint64

	// Metrics is where the process declares its metrics; nil: nowhere but where operators see them.
	Metrics *telemetry.Metrics
	// Tracer takes the process's spans instead of one that sends them to Traces; nil: that one. The caller closes it.
	Tracer *telemetry.Tracer

	// Notice is called with what is warned of before calls are served. It may be nil.
	Notice func(text string)
	// Ready is called once, when calls are served, with the address that is listened on, "" without an API server. It may
	// be nil.
	Ready func(listening string)
}

// ClusterConfig makes the process a node of a cluster.
type ClusterConfig struct {
	Identity     string // file that says who the node is and what it may do
	Listen       string // HOST:PORT of Raft and of calls between nodes
	GossipListen string // HOST:PORT, TCP and UDP
	Advertise    string // HOST at which other nodes reach this one; "": found out
	Join         []string
	Bootstrap    bool // create the cluster unless it exists
	LeaveOnStop  bool
}

// ServicesConfig says where the log, the row store and the cache are, and what is whose there.
type ServicesConfig struct {
	Connections
	KafkaPrefix   string `group:"services" help:"Before the names of topics." default:"shoal." placeholder:"TEXT"`
	KafkaReplicas int    `group:"services" help:"Replicas of new topics; 0: three, or one for each broker." default:"0"`
	RedisPrefix   string `group:"services" help:"Before the names of keys." default:"shoal:" placeholder:"TEXT"`
}

// Traces says where spans go and how many calls begin some.
type Traces struct {
	Endpoint string // URL of an OTLP collector over HTTP; "": no traces
	Ratio    float64
}

// Times are what a cluster's fetching is timed by; zero values take the defaults of the roles.
type Times struct {
	Fetch   time.Duration // one try at a page
	Lease   time.Duration // how long a fetcher works without hearing from the leader
	Markers time.Duration // between two looks for losses
	Stop    time.Duration // for handing over what is under way
	Grace   time.Duration // from the signal to the API's last new call

	Election time.Duration // given to an election of the control plane's leader at least
}

type Command struct {
	Data   string   `help:"Directory of everything that is kept." default:"./data" placeholder:"DIR"`
	Listen string   `help:"Address of the API." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Roles  []string `help:"Roles of this process: all, or in a cluster those of its identity, unless named." placeholder:"ROLE"`

	Identity      string   `group:"cluster" help:"Identity of this node, from 'shoal cluster cert': makes the process a node of that cluster." type:"path" placeholder:"FILE"`
	Join          []string `group:"cluster" help:"Gossip addresses of members, any of which will do." placeholder:"HOST:PORT"`
	Bootstrap     bool     `group:"cluster" help:"Create the cluster at the first start, unless --join finds it."`
	ClusterListen string   `group:"cluster" help:"Address of Raft and of calls between nodes (mutual TLS)." default:"0.0.0.0:7400" placeholder:"HOST:PORT"`
	GossipListen  string   `group:"cluster" help:"Address of gossip, TCP and UDP (encrypted)." default:"0.0.0.0:7401" placeholder:"HOST:PORT"`
	Advertise     string   `group:"cluster" help:"Host or IP at which other nodes reach this one; by default that of the listening address, or the machine's." placeholder:"HOST"`
	Capacity      uint32   `group:"cluster" help:"Weight of this fetcher when work is dealt out." default:"1"`
	LeaveOnStop   bool     `group:"cluster" help:"Leave the cluster for good when stopped: for nodes that come and go."`

	ElectionTimeout time.Duration `group:"cluster" help:"Least time that an election of the control plane's leader is given; more where writes to the disk are slow, or elections are lost." default:"500ms"`

	Services ServicesConfig `embed:""`
	Model    ModelFlags     `embed:"" prefix:"model-"`
	Calls    CallFlags      `embed:""`

	OpsListen     string        `group:"operation" help:"Address of /metrics, /api/livez and /api/readyz of any process; none by default." placeholder:"HOST:PORT"`
	AdminListen   string        `group:"operation" help:"Address of an operators' door to the whole API: /api/admin and /metrics are served there alone then. By default with the API, for administrators." placeholder:"HOST:PORT"`
	OpsProfiles   bool          `group:"operation" help:"Show profiles of the process at --ops-listen, too."`
	TraceEndpoint string        `group:"operation" help:"OTLP collector (HTTP) that traces are sent to; none by default." placeholder:"URL"`
	TraceRatio    float64       `group:"operation" help:"Share of API calls that are traced, and with them the runs that they launch." default:"0.01"`
	LogStderr     bool          `group:"operation" help:"Log JSON lines to stderr instead of text into the data directory."`
	LogLevel      slog.Level    `group:"operation" help:"Log from this level on: debug, info, warn or error. PUT /log-level at --ops-listen changes it." default:"info" placeholder:"LEVEL"`
	SelfKey       bool          `group:"operation" help:"Make the self-hosting customer and write its key to the data directory, as a process alone always does."`
	StopGrace     time.Duration `group:"operation" help:"Serve on for so long after SIGTERM, no longer ready, so that a balancer looks elsewhere." default:"0s"`

	EgressAllow        []netip.Prefix    `help:"Private ranges that may be reached all the same; none by default." placeholder:"CIDR"`
	EgressOrigin       map[string]string `hidden:"" mapsep:"," help:"Hosts that are dialled at a fixed place instead of asking DNS: HOST=IP:PORT or *.SUFFIX=IP:PORT. For test webs."`
	Proxies            string            `help:"File that names proxies for tier super, one a line: http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host where needed." type:"path" placeholder:"FILE"`
	Chromium           string            `help:"Chromium for tier render, which then has to start; looked for on PATH by default, 'none' does without." placeholder:"PATH"`
	HostRate           float64           `help:"Request starts per second that a host gets, unless a scraper says otherwise." default:"1"`
	HostConnections    int               `help:"Connections that a host gets, unless a scraper says otherwise." default:"2"`
	MaxHostRate        float64           `help:"Most request starts per second that a scraper may ask for." default:"10"`
	MaxHostConnections int               `help:"Most connections to a host that a scraper may ask for." default:"8"`
	NoRateLimits       bool              `help:"Do not limit how often API calls may be made, nor how many connections and streams a caller has."`
	RebindServices     bool              `help:"Kafka and the database of this node are the cluster's from now on, whosever they were. For the first node of the control plane that starts after all were stopped."`
	SearchEngines      string            `help:"JSON file with the search engines that SEARCH_ENGINE_SEARCH may ask; none by default." placeholder:"FILE" type:"existingfile"`

	FetchWorkers int           `hidden:"" help:"Requests that the fetcher has under way, at most." default:"0"`
	FetchTimeout time.Duration `hidden:"" help:"Of one try at a page." default:"30s"`
	Lease        time.Duration `hidden:"" help:"How long a fetcher works without hearing from the leader." default:"10s"`
	MarkerEvery  time.Duration `hidden:"" help:"Between two looks for losses." default:"3s"`
	StopWithin   time.Duration `hidden:"" help:"For handing over what is under way." default:"30s"`

	engines []model.SearchEngine `kong:"-"` // of SearchEngines

	RaftSnapshotEntries uint64 `hidden:"" help:"Raft entries after which a snapshot is taken, looked at every so many milliseconds. For tests."`
}

// Help teaches the command.
func (*Command) Help() string {
	return `The first start makes the self-hosting customer and writes its API key to DIR/api-key; while the service runs,
DIR/address says where. The other commands read both. SIGTERM and Ctrl-C stop it cleanly.

Examples:

  shoal serve
  shoal serve --data /var/lib/shoal --listen 0.0.0.0:8080
  shoal serve --search-engines engines.json     # [{"name": "searxng", "url": "https://…/search?q={query}&format=json"}]
  shoal serve --egress-allow 10.20.0.0/16 --max-host-rate 50     # sites of your own network, faster`
}

// Validate checks what a flag alone cannot.
func (c *Command) Validate() error {
	for _, role := range c.Roles {
		if !slices.Contains(identity.Roles(), role) {
			return fmt.Errorf("--roles: %q is none of %s", role, strings.Join(identity.Roles(), ", "))
		}
	}
	for flag, address := range map[string]string{"--listen": c.Listen, "--ops-listen": c.OpsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
			return fmt.Errorf("%s: want HOST:PORT: %w", flag, err)
		}
	}
	if _, err := hostPort(c.AdminListen); err != nil && c.AdminListen != "" {
		return fmt.Errorf("--admin-listen: %w", err)
	}
	if err := cmp.Or(c.checkCluster(), c.Services.Check(), c.Model.check(), c.Calls.check(c.NoRateLimits)); err != nil {
		return err
	}
	if c.SearchEngines != "" {
		data, err := os.ReadFile(c.SearchEngines)
		if err != nil {
			return fmt.Errorf("--search-engines: %w", err)
		}
		if c.engines, err = extract.ParseEngines(data); err != nil {
			return fmt.Errorf("--search-engines: %s: %w", c.SearchEngines, err)
		}
	}
	for host, to := range c.EgressOrigin {
		if _, err := netip.ParseAddrPort(to); err != nil {
			return fmt.Errorf("--egress-origin: %s: want IP:PORT: %w", host, err)
		}
	}
	switch {
	case !(c.HostRate > 0) || c.HostRate > c.MaxHostRate:
		return fmt.Errorf("--host-rate: above 0 and at most --max-host-rate (%g)", c.MaxHostRate)
	case !(c.TraceRatio > 0 && c.TraceRatio <= 1):
		return fmt.Errorf("--trace-ratio: above 0, at most 1")
	case c.TraceEndpoint != "" && !isCollector(c.TraceEndpoint):
		return fmt.Errorf("--trace-endpoint: want the URL of a collector, http:// or https://")
	case c.StopGrace < 0:
		return fmt.Errorf("--stop-grace: 0s or more")
	case c.HostConnections < 1 || c.HostConnections > c.MaxHostConnections:
		return fmt.Errorf("--host-connections: at least 1 and at most --max-host-connections (%d)", c.MaxHostConnections)
	}
	return nil
}

// checkCluster refuses half of a cluster.
func (c *Command) checkCluster() error {
	switch {
	case c.Identity == "" && len(c.Roles) > 0 && len(c.roles()) < len(identity.Roles()):
		return fmt.Errorf("--roles: a process with fewer than all roles is a node of a cluster, and needs --identity")
	case c.Identity == "" && (len(c.Join) > 0 || c.Bootstrap):
		return fmt.Errorf("--join, --bootstrap: a node of a cluster needs --identity")
	case c.Identity != "" && (len(c.Services.KafkaBrokers) == 0 || c.Services.ClickhouseURL == ""):
		return fmt.Errorf("--identity: the nodes of a cluster share --kafka-brokers and --clickhouse-url")
	case c.Identity != "" && len(c.Join) == 0 && !c.Bootstrap:
		return fmt.Errorf("--identity: --join names members of the cluster, or --bootstrap creates it")
	case c.Capacity < 1 || c.Capacity > controlplane.MaxCapacity:
		return fmt.Errorf("--capacity: 1 to %d", controlplane.MaxCapacity)
	case c.ElectionTimeout < controlplane.MinElectionTimeout || c.ElectionTimeout > controlplane.MaxElectionTimeout:
		return fmt.Errorf("--election-timeout: %v to %v", controlplane.MinElectionTimeout, controlplane.MaxElectionTimeout)
	case c.Services.KafkaReplicas < 0:
		return fmt.Errorf("--kafka-replicas: 0 or more")
	case !topicPrefix.MatchString(c.Services.KafkaPrefix):
		return fmt.Errorf("--kafka-prefix: at most 200 letters, digits, dots, hyphens and underscores")
	case c.Bootstrap && len(c.Roles) > 0 && !slices.Contains(c.Roles, identity.ControlPlane):
		return ErrFounder
	}
	return c.checkAddresses()
}

// topicPrefix leaves room for what stands behind it: Kafka takes 249 characters.
var topicPrefix = regexp.MustCompile(`^[A-Za-z0-9._-]{0,200}$`)

var ErrFounder = errors.New("--bootstrap: only a node with the role " + identity.ControlPlane + " creates the cluster")

func isCollector(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != ""
}

// checkAddresses refuses what no other node could be reached at: a slip there shows nowhere else.
func (c *Command) checkAddresses() error {
	for _, one := range []struct{ flag, address string }{
		{"--cluster-listen", c.ClusterListen}, {"--gossip-listen", c.GossipListen},
	} {
		if _, err := hostPort(one.address); err != nil {
			return fmt.Errorf("%s: %w", one.flag, err)
		}
	}
	for _, address := range c.Join {
		if host, err := hostPort(address); err != nil || !isHost(host) {
			return fmt.Errorf("--join: %q: %w", address, cmp.Or(err, errNoHost))
		}
	}
	if c.Advertise != "" && !isHost(c.Advertise) {
		return fmt.Errorf("--advertise: %q: want a host name or an IP address, without a port", c.Advertise)
	}
	return nil
}

var errNoHost = errors.New("want HOST:PORT, with a host name or an IP address")

// hostPort is the host of an address whose port is one that others can call.
func hostPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("want HOST:PORT: %w", err)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65_535 {
		return "", fmt.Errorf("want HOST:PORT, with a port from 1 to 65535, not %q", port)
	}
	return host, nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$`)

// isHost says whether text may be a host's name or IP address.
func isHost(text string) bool {
	return net.ParseIP(text) != nil || hostName.MatchString(text)
}

// roles are those that are named, each once, in the order of identity.Roles; none when none is named.
func (c *Command) roles() []string {
	return slices.DeleteFunc(identity.Roles(), func(role string) bool { return !slices.Contains(c.Roles, role) })
}

// Run serves until the context ends.
func (c *Command) Run(ctx context.Context, t *terminal.Terminal, run Runner) error {
	config := c.config()
	return Serve(ctx, t, run, config, func(server string) {
		key := "API key in " + filepath.Join(c.Data, datadir.KeyFile)
		if !config.SelfKey {
			key = "Data in " + c.Data
		}
		if server == "" {
			t.Notef("Serving as a node of the cluster. %s. Ctrl-C stops.", key)
			return
		}
		t.Notef("Serving %s\n%s. Ctrl-C stops.", server, key)
	})
}

func (c *Command) config() Config {
	config := Config{
		Data: c.Data, Listen: c.Listen, Roles: c.roles(), Capacity: c.Capacity,
		OpsListen: c.OpsListen, AdminListen: c.AdminListen, OpsProfiles: c.OpsProfiles, LogStderr: c.LogStderr, LogLevel: c.LogLevel,
		Traces: Traces{Endpoint: c.TraceEndpoint, Ratio: c.TraceRatio}, SelfKey: c.SelfKey || c.Identity == "",
		Services: c.Services, Model: c.Model,
		Times: Times{Fetch: c.FetchTimeout, Lease: c.Lease, Markers: c.MarkerEvery, Stop: c.StopWithin, Grace: c.StopGrace,
			Election: c.ElectionTimeout},
		EgressAllow: c.EgressAllow, Origins: c.EgressOrigin,
		Proxies: c.Proxies, Chromium: findChromium(c.Chromium), ChromiumNamed: c.Chromium != "",
		HostRate: c.HostRate, HostConnections: c.HostConnections,
		MaxHostRate: c.MaxHostRate, MaxHostConnections: c.MaxHostConnections,
		NoRateLimits: c.NoRateLimits, Calls: c.Calls, RebindServices: c.RebindServices, SearchEngines: c.engines,
		FetchWorkers: c.FetchWorkers, SnapshotEntries: c.RaftSnapshotEntries,
	}
	if c.Identity != "" {
		config.Cluster = &ClusterConfig{Identity: c.Identity, Listen: c.ClusterListen, GossipListen: c.GossipListen,
			Advertise: c.Advertise, Join: c.Join, Bootstrap: c.Bootstrap, LeaveOnStop: c.LeaveOnStop}
	} else if len(config.Roles) == 0 {
		config.Roles = identity.Roles()
	}
	return config
}

// Runner runs the roles of one process until ctx ends, and then stops them in order; nil after a clean stop.
type Runner func(ctx context.Context, config Config) error

// Serve runs the roles until the context ends, with the address file in place as long as calls are served. ready hears
// the base address of the API, "" without an API server.
func Serve(ctx context.Context, t *terminal.Terminal, run Runner, config Config, ready func(server string)) error {
	withdraw := func() {}
	config.Notice = func(text string) { t.Notef("shoal: %s", text) }
	config.Ready = func(listening string) {
		if listening == "" {
			ready("")
			return
		}
		undo, err := datadir.Publish(config.Data, cmp.Or(config.AdminListen, listening))
		if err != nil {
			t.Notef("shoal: %v", err)
			undo = func() {}
		}
		withdraw = undo
		ready("http://" + datadir.Reachable(listening))
	}
	err := run(ctx, config)
	withdraw()
	return err
}

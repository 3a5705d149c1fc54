package service

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// Log sizes that apply without a setting.
const (
	defaultLogMB    = 64
	defaultLogFiles = 2
)

// Config is the configuration of a service process. Most of it is the flags of `shoal serve`, which
// are declared only here.
type Config struct {
	Data string `help:"Directory of everything that is kept." default:"./data" placeholder:"DIR"`
	// port 0 picks a free one
	Listen string   `help:"Address of the API." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Roles  []string `help:"Roles of this process: all, or in a cluster those of its identity, unless named." placeholder:"ROLE"`

	Cluster  ClusterConfig  `embed:""`
	Services ServicesConfig `embed:""`
	Model    ModelFlags     `embed:"" prefix:"model-"`
	Stripe   StripeFlags    `embed:"" prefix:"stripe-"`
	OpenID   OpenIDFlags    `embed:"" prefix:"oidc-"`
	Calls    CallFlags      `embed:""`
	Backups  BackupFlags    `embed:""`
	Mail     MailFlags      `embed:""`
	TLS      TLSFlags       `embed:"" prefix:"tls-"`

	PublicURL   string        `name:"public-url" group:"sign-in" help:"Where browsers find this service. Links in e-mails name it, and it is the issuer of programs' tokens and the place of passkeys. With --smtp it lets people recover a forgotten password." placeholder:"https://HOST"`
	OpsListen   string        `group:"operation" help:"Address of /metrics, /api/livez and /api/readyz of any process; none by default." placeholder:"HOST:PORT"`
	AdminListen string        `group:"operation" help:"Address of an operators' door to the whole API: /api/admin and /metrics are served there alone then. By default with the API, for administrators." placeholder:"HOST:PORT"`
	OpsProfiles bool          `group:"operation" help:"Show profiles of the process at --ops-listen, too."`
	Traces      Traces        `embed:"" prefix:"trace-"`
	LogStderr   bool          `group:"operation" help:"Log JSON lines to stderr instead of text into the data directory."`
	LogLevel    slog.Level    `group:"operation" help:"Log from this level on: debug, info, warn or error. PUT /log-level at --ops-listen changes it." default:"info" placeholder:"LEVEL"`
	LogMB       int           `group:"operation" name:"log-mb" help:"Megabytes of the log's file, after which a new one begins." default:"64" placeholder:"MB"`
	LogFiles    int           `group:"operation" help:"Files of the log, the newest included; the oldest goes." default:"2" placeholder:"N"`
	FreeMB      int           `group:"operation" name:"free-mb" help:"Megabytes that stay free on the disk of the data directory and on the row store's. With fewer, lists, launches and uploads are refused, and runs wait; 0: it is never looked." default:"1024" placeholder:"MB"`
	BodyMB      int           `group:"operation" name:"body-mb" help:"Megabytes that a customer may have of kept page bodies; the oldest make room." default:"10240" placeholder:"MB"`
	HistoryDays int           `group:"operation" help:"Days for which an ended run stays in the history. The ledger stays for ever." default:"400" placeholder:"DAYS"`
	SelfKey     bool          `group:"operation" help:"Make the self-hosting customer and write its key to the data directory, as a process alone always does."`
	StopGrace   time.Duration `group:"operation" help:"Serve on for so long after SIGTERM, no longer ready, so that a balancer looks elsewhere." default:"0s"`

	EgressAllow        []netip.Prefix       `help:"Private ranges that may be reached all the same; none by default." placeholder:"CIDR"`
	Origins            map[string]string    `name:"egress-origin" hidden:"" mapsep:"," help:"Hosts that are dialled at a fixed place instead of asking DNS: HOST=IP:PORT or *.SUFFIX=IP:PORT. For test webs."`
	Proxies            string               `help:"File that names proxies for tier super, one a line: http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host where needed." type:"path" placeholder:"FILE"`
	Chromium           string               `help:"Chromium for tier render, which then has to start; looked for on PATH by default, 'none' does without." placeholder:"PATH"`
	HostRate           float64              `help:"Request starts per second that a host gets, unless a scraper says otherwise." default:"1"`
	HostConnections    int                  `help:"Connections that a host gets, unless a scraper says otherwise." default:"2"`
	MaxHostRate        float64              `help:"Most request starts per second that a scraper may ask for." default:"10"`
	MaxHostConnections int                  `help:"Most connections to a host that a scraper may ask for." default:"8"`
	NoRateLimits       bool                 `help:"Do not limit how often API calls may be made, nor how many connections and streams a caller has."`
	RebindServices     bool                 `help:"Kafka and the database of this node are the cluster's from now on, whosever they were. For the first node of the control plane that starts after all were stopped."`
	SearchEngines      Engines              `help:"JSON file with the search engines that SEARCH_ENGINE_SEARCH may ask; none by default." placeholder:"FILE"`
	Plans              kong.FileContentFlag `help:"JSON file with the catalogue of legacy plans, for a cluster that has none so far; by default the one that comes with the program. Later PUT /api/admin/settings changes it." placeholder:"FILE"`
	UserAgreement      kong.FileContentFlag `help:"HTML file that customers agree with; by default the page says that there is none." placeholder:"FILE"`

	// 0: the fetcher's own default
	FetchWorkers        int           `hidden:"" help:"Requests that the fetcher has under way, at most." default:"0"`
	FetchTimeout        time.Duration `hidden:"" help:"Of one try at a page." default:"30s"`
	Lease               time.Duration `hidden:"" help:"How long a fetcher works without hearing from the leader." default:"10s"`
	MarkerEvery         time.Duration `hidden:"" help:"Between two looks for losses." default:"3s"`
	ArchiveEvery        time.Duration `hidden:"" help:"After all ended runs and their entries have left the state, until it is looked again." default:"10s"`
	ArchiveKeep         int           `hidden:"" help:"Ended runs, and entries, of each customer that stay in the state all the same." default:"10"`
	StopWithin          time.Duration `hidden:"" help:"For handing over what is under way." default:"30s"`
	RaftSnapshotEntries uint64        `hidden:"" help:"Raft entries after which a snapshot is taken, looked at every so many milliseconds. For tests."`

	// Metrics is where the process declares its metrics; nil: only where operators see them.
	Metrics *telemetry.Metrics `kong:"-"`
	// Tracer takes the process's spans; nil: a tracer that sends them to Traces. The caller closes
	// it.
	Tracer *telemetry.Tracer `kong:"-"`
	// Notice is called with warnings that come before calls are served. It may be nil.
	Notice func(text string) `kong:"-"`
	// Once is a link that signs in a person at this machine. It may be nil.
	Once *apiserver.Once `kong:"-"`
	// Ready is called once when calls are served, with the listening address, "" without an API
	// server. It may be nil.
	Ready func(listening string) `kong:"-"`
}

// ClusterConfig makes the process a node of a cluster, if it has an identity.
type ClusterConfig struct {
	Identity     string   `group:"cluster" help:"Identity of this node, from 'shoal cluster cert': makes the process a node of that cluster." type:"path" placeholder:"FILE"`
	Join         []string `group:"cluster" help:"Gossip addresses of members, any of which will do." placeholder:"HOST:PORT"`
	Bootstrap    bool     `group:"cluster" help:"Create the cluster at the first start, unless --join finds it."`
	Listen       string   `name:"cluster-listen" group:"cluster" help:"Address of Raft and of calls between nodes (mutual TLS)." default:"0.0.0.0:7400" placeholder:"HOST:PORT"`
	GossipListen string   `group:"cluster" help:"Address of gossip, TCP and UDP (encrypted)." default:"0.0.0.0:7401" placeholder:"HOST:PORT"`
	Advertise    string   `group:"cluster" help:"Host or IP at which other nodes reach this one; by default that of the listening address, or the machine's." placeholder:"HOST"`
	Capacity     uint32   `group:"cluster" help:"Weight of this fetcher when work is dealt out." default:"1"`
	LeaveOnStop  bool     `group:"cluster" help:"Leave the cluster for good when stopped: for nodes that come and go."`

	ElectionTimeout time.Duration `group:"cluster" help:"Least time that an election of the control plane's leader is given; more where writes to the disk are slow, or elections are lost." default:"500ms"`
}

// alone says that the process is its own cluster.
func (c *ClusterConfig) alone() bool { return c.Identity == "" }

// ServicesConfig says where log, row store and cache are, and which names are used there.
type ServicesConfig struct {
	Connections
	KafkaPrefix   string `group:"services" help:"Before the names of topics." default:"shoal." placeholder:"TEXT"`
	KafkaReplicas int    `group:"services" help:"Replicas of new topics; 0: three, or one for each broker." default:"0"`
	RedisPrefix   string `group:"services" help:"Before the names of keys." default:"shoal:" placeholder:"TEXT"`
}

// Traces says where spans go and which share of calls is traced.
type Traces struct {
	Endpoint string  `group:"operation" help:"OTLP collector (HTTP) that traces are sent to; none by default." placeholder:"URL"`
	Ratio    float64 `group:"operation" help:"Share of API calls that are traced, and with them the runs that they launch." default:"0.01"`
}

// Engines are search engines, as listed in a file.
type Engines []model.SearchEngine

// Decode implements kong.MapperValue.
func (e *Engines) Decode(ctx *kong.DecodeContext) error {
	var name string
	if err := ctx.Scan.PopValueInto("file", &name); err != nil {
		return err
	}
	data, err := os.ReadFile(kong.ExpandPath(name))
	if err != nil {
		return err
	}
	if *e, err = extract.ParseEngines(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

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
	Data string `help:"Directory for all data." default:"./data" placeholder:"DIR"`
	// port 0 picks a free one
	Listen string   `help:"Address of the API." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Roles  []string `help:"Roles of this process. By default all, or in a cluster those of its identity." placeholder:"ROLE"`

	Cluster  ClusterConfig  `embed:""`
	Services ServicesConfig `embed:""`
	Model    ModelFlags     `embed:"" prefix:"model-"`
	Stripe   StripeFlags    `embed:"" prefix:"stripe-"`
	OpenID   OpenIDFlags    `embed:"" prefix:"oidc-"`
	Calls    CallFlags      `embed:""`
	Backups  BackupFlags    `embed:""`
	Mail     MailFlags      `embed:""`
	TLS      TLSFlags       `embed:"" prefix:"tls-"`

	PublicURL   string        `name:"public-url" group:"sign-in" help:"Address of this service for browsers. Links in e-mails use it, and it is the issuer of programs' tokens and the site of passkeys. With --smtp, people can recover a forgotten password." placeholder:"https://HOST"`
	OpsListen   string        `group:"operation" help:"Address of /metrics, /api/livez and /api/readyz, whatever the process's roles; none by default." placeholder:"HOST:PORT"`
	AdminListen string        `group:"operation" help:"Separate operators' address of the whole API. /api/admin and /metrics are then served only there. By default they are served at --listen, to administrators." placeholder:"HOST:PORT"`
	OpsProfiles bool          `group:"operation" help:"Also serve profiles of the process at --ops-listen."`
	Traces      Traces        `embed:"" prefix:"trace-"`
	LogStderr   bool          `group:"operation" help:"Log JSON lines to stderr, instead of text to the data directory."`
	LogLevel    slog.Level    `group:"operation" help:"Lowest level that is logged: debug, info, warn or error. PUT /log-level at --ops-listen changes it." default:"info" placeholder:"LEVEL"`
	LogMB       int           `group:"operation" name:"log-mb" help:"Size of a log file in megabytes. A full one is followed by a new one." default:"64" placeholder:"MB"`
	LogFiles    int           `group:"operation" help:"Number of log files to keep, the newest included. The oldest is removed." default:"2" placeholder:"N"`
	FreeMB      int           `group:"operation" name:"free-mb" help:"Megabytes to keep free on the disks of the data directory and the row store. With less, lists, launches and uploads are refused, and runs wait; 0: no check." default:"1024" placeholder:"MB"`
	BodyMB      int           `group:"operation" name:"body-mb" help:"Megabytes of kept page bodies per customer. The oldest are removed to make room." default:"10240" placeholder:"MB"`
	HistoryDays int           `group:"operation" help:"Days for which an ended run stays in the history. The ledger is kept forever." default:"400" placeholder:"DAYS"`
	SelfKey     bool          `group:"operation" help:"Create the self-hosting customer and write its key to the data directory, as a single process always does."`
	StopGrace   time.Duration `group:"operation" help:"How long to keep serving after SIGTERM while reporting not ready, so that a load balancer turns elsewhere." default:"0s"`

	EgressAllow        []netip.Prefix       `help:"Private address ranges that requests may reach; none by default." placeholder:"CIDR"`
	Origins            map[string]string    `name:"egress-origin" hidden:"" mapsep:"," help:"Hosts dialled at a fixed address instead of through DNS: HOST=IP:PORT or *.SUFFIX=IP:PORT. For test webs."`
	Proxies            string               `help:"File with the proxies of tier super, one per line: http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host if needed." type:"path" placeholder:"FILE"`
	Chromium           string               `help:"Chromium for tier render; if set, it must start. By default the one on PATH, if any; 'none' turns the tier off." placeholder:"PATH"`
	HostRate           float64              `help:"Request starts per second at a host, unless the scraper sets another pace." default:"1"`
	HostConnections    int                  `help:"Connections to a host, unless the scraper sets another number." default:"2"`
	MaxHostRate        float64              `help:"Most request starts per second that a scraper may ask for." default:"10"`
	MaxHostConnections int                  `help:"Most connections to a host that a scraper may ask for." default:"8"`
	NoRateLimits       bool                 `help:"Do not limit the rate of API calls, nor the connections and streams of a caller."`
	RebindServices     bool                 `help:"Bind the cluster to this node's Kafka and database, even if they belonged to another cluster. For the first control-plane node that starts after all were stopped."`
	SearchEngines      Engines              `help:"JSON file with the search engines that SEARCH_ENGINE_SEARCH may use; none by default." placeholder:"FILE"`
	Plans              kong.FileContentFlag `help:"JSON file with the catalogue of legacy plans, for a cluster that has none yet; by default the built-in one. PUT /api/admin/settings changes it later." placeholder:"FILE"`
	UserAgreement      kong.FileContentFlag `help:"HTML file with the user agreement for customers. Without it the page says that there is none." placeholder:"FILE"`

	// 0: the fetcher's own default
	FetchWorkers        int           `hidden:"" help:"Most requests that the fetcher has under way." default:"0"`
	FetchTimeout        time.Duration `hidden:"" help:"Timeout of one try at a page." default:"30s"`
	Lease               time.Duration `hidden:"" help:"How long a fetcher works without hearing from the leader." default:"10s"`
	MarkerEvery         time.Duration `hidden:"" help:"Time between two checks for losses." default:"3s"`
	ArchiveEvery        time.Duration `hidden:"" help:"Pause until the next check, after all ended runs and their entries have left the state." default:"10s"`
	ArchiveKeep         int           `hidden:"" help:"Ended runs, and entries, of each customer that stay in the state all the same." default:"10"`
	StopWithin          time.Duration `hidden:"" help:"Time to hand over what is under way." default:"30s"`
	RaftSnapshotEntries uint64        `hidden:"" help:"Raft entries after which a snapshot is taken, and the milliseconds between two checks. For tests."`

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
	Identity     string   `group:"cluster" help:"Identity of this node, from 'shoal cluster cert'. It makes the process a node of that cluster." type:"path" placeholder:"FILE"`
	Join         []string `group:"cluster" help:"Gossip addresses of members. One that answers is enough." placeholder:"HOST:PORT"`
	Bootstrap    bool     `group:"cluster" help:"Create the cluster at the first start, unless --join finds it."`
	Listen       string   `name:"cluster-listen" group:"cluster" help:"Address for Raft and for calls between nodes (mutual TLS)." default:"0.0.0.0:7400" placeholder:"HOST:PORT"`
	GossipListen string   `group:"cluster" help:"Address for gossip, TCP and UDP (encrypted)." default:"0.0.0.0:7401" placeholder:"HOST:PORT"`
	Advertise    string   `group:"cluster" help:"Host or IP at which other nodes reach this one. By default that of the listening address, or the machine's." placeholder:"HOST"`
	Capacity     uint32   `group:"cluster" help:"Weight of this fetcher when shards are assigned." default:"1"`
	LeaveOnStop  bool     `group:"cluster" help:"Leave the cluster for good when stopped. For nodes that come and go."`

	ElectionTimeout time.Duration `group:"cluster" help:"Minimum election timeout of the control plane. Raise it if disk writes are slow or elections are lost." default:"500ms"`
}

// alone says that the process is its own cluster.
func (c *ClusterConfig) alone() bool { return c.Identity == "" }

// ServicesConfig says where log, row store and cache are, and which names are used there.
type ServicesConfig struct {
	Connections
	KafkaPrefix   string `group:"services" help:"Prefix of topic names." default:"shoal." placeholder:"TEXT"`
	KafkaReplicas int    `group:"services" help:"Replicas of new topics; 0: three, or one per broker if there are fewer." default:"0"`
	RedisPrefix   string `group:"services" help:"Prefix of key names." default:"shoal:" placeholder:"TEXT"`
}

// Traces says where spans go and which share of calls is traced.
type Traces struct {
	Endpoint string  `group:"operation" help:"OTLP collector (HTTP) to send traces to; none by default." placeholder:"URL"`
	Ratio    float64 `group:"operation" help:"Share of API calls that are traced, together with the runs that they launch." default:"0.01"`
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

package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
)

// Command is `shoal serve`.
type Command struct{ Config }

// Help returns the command's help text.
func (*Command) Help() string {
	return `The first start creates the self-hosting customer and writes its API key to DIR/api-key. While the service runs,
DIR/address has its address. The other commands read both. SIGTERM and Ctrl-C stop the service cleanly.

Examples:

  shoal serve
  shoal serve --data /var/lib/shoal --listen 0.0.0.0:8080
  shoal serve --search-engines engines.json     # [{"name": "searxng", "url": "https://…/search?q={query}&format=json"}]
  shoal serve --egress-allow 10.20.0.0/16 --max-host-rate 50     # sites in your own network, faster`
}

// Upper bounds of a log.
const (
	maxLogMB    = 10_000
	maxLogFiles = 100
)

// maxFreeMB bounds --free-mb: a terabyte.
const maxFreeMB = 1 << 20

// minBodyMB is the smallest --body-mb: two packs.
const minBodyMB = 128

// Validate checks combinations of flags.
func (c *Command) Validate() error {
	for _, role := range c.Roles {
		if !slices.Contains(identity.Roles(), role) {
			return fmt.Errorf("--roles: %q is none of %s", role,
				strings.Join(identity.Roles(), ", "))
		}
	}
	for flag, address := range map[string]string{"--listen": c.Listen,
		"--ops-listen": c.OpsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
			return fmt.Errorf("%s: want HOST:PORT: %w", flag, err)
		}
	}
	if _, err := hostPort(c.AdminListen); err != nil && c.AdminListen != "" {
		return fmt.Errorf("--admin-listen: %w", err)
	}
	if err := cmp.Or(c.checkCluster(), c.Services.Check(), c.Model.check(),
		c.OpenID.check(), c.Calls.check(c.NoRateLimits), c.Backups.check(),
		c.Stripe.check(), c.Mail.check(), c.TLS.check()); err != nil {
		return err
	}
	if c.PublicURL != "" {
		if err := apiserver.CheckPublicURL(c.PublicURL); err != nil {
			return fmt.Errorf("--public-url: %w", err)
		}
	}
	if len(c.Plans) > 0 {
		if err := apiserver.CheckPlans(c.Plans); err != nil {
			return fmt.Errorf("--plans: %w", err)
		}
	}
	for host, to := range c.Origins {
		if _, err := netip.ParseAddrPort(to); err != nil {
			return fmt.Errorf("--egress-origin: %s: want IP:PORT: %w", host, err)
		}
	}
	switch {
	case !(c.HostRate > 0) || c.HostRate > c.MaxHostRate:
		return fmt.Errorf("--host-rate: above 0 and at most --max-host-rate (%g)", c.MaxHostRate)
	case !(c.Traces.Ratio > 0 && c.Traces.Ratio <= 1):
		return fmt.Errorf("--trace-ratio: above 0, at most 1")
	case c.Traces.Endpoint != "" && !isCollector(c.Traces.Endpoint):
		return fmt.Errorf("--trace-endpoint: want the URL of a collector, http:// or https://")
	case c.LogMB < 1 || c.LogMB > maxLogMB:
		return fmt.Errorf("--log-mb: 1 to %d", maxLogMB)
	case c.LogFiles < 1 || c.LogFiles > maxLogFiles:
		return fmt.Errorf("--log-files: 1 to %d", maxLogFiles)
	case c.FreeMB < 0 || c.FreeMB > maxFreeMB:
		return fmt.Errorf("--free-mb: 0 to %d", maxFreeMB)
	case c.BodyMB < minBodyMB || c.BodyMB > maxFreeMB:
		return fmt.Errorf("--body-mb: %d to %d", minBodyMB, maxFreeMB)
	case c.HistoryDays < controlclient.MinHistoryDays ||
		c.HistoryDays > controlclient.MaxHistoryDays:
		return fmt.Errorf("--history-days: %d to %d", controlclient.MinHistoryDays,
			controlclient.MaxHistoryDays)
	case c.StopGrace < 0:
		return fmt.Errorf("--stop-grace: 0s or more")
	case c.HostConnections < 1 || c.HostConnections > c.MaxHostConnections:
		return fmt.Errorf("--host-connections: at least 1 and at most --max-host-connections (%d)",
			c.MaxHostConnections)
	}
	return nil
}

// checkCluster refuses incomplete cluster settings.
func (c *Command) checkCluster() error {
	switch {
	case c.Cluster.alone() && len(c.Roles) > 0 && len(c.roles()) < len(identity.Roles()):
		return fmt.Errorf("--roles: a process with fewer than all roles is a node of a cluster, " +
			"and needs --identity")
	case c.Cluster.alone() && (len(c.Cluster.Join) > 0 || c.Cluster.Bootstrap):
		return fmt.Errorf("--join, --bootstrap: a node of a cluster needs --identity")
	case !c.Cluster.alone() &&
		(len(c.Services.KafkaBrokers) == 0 || c.Services.ClickhouseURL == ""):
		return fmt.Errorf("--identity: the nodes of a cluster share --kafka-brokers and " +
			"--clickhouse-url")
	case !c.Cluster.alone() && c.Services.directory() != "":
		return fmt.Errorf("--blobs: the nodes of a cluster share a bucket, s3://BUCKET")
	case !c.Cluster.alone() && len(c.Cluster.Join) == 0 && !c.Cluster.Bootstrap:
		return fmt.Errorf("--identity: --join names members of the cluster, or " +
			"--bootstrap creates it")
	case c.Cluster.Capacity < 1 || c.Cluster.Capacity > controlplane.MaxCapacity:
		return fmt.Errorf("--capacity: 1 to %d", controlplane.MaxCapacity)
	case c.Cluster.ElectionTimeout < controlplane.MinElectionTimeout ||
		c.Cluster.ElectionTimeout > controlplane.MaxElectionTimeout:
		return fmt.Errorf("--election-timeout: %v to %v", controlplane.MinElectionTimeout,
			controlplane.MaxElectionTimeout)
	case c.Services.KafkaReplicas < 0:
		return fmt.Errorf("--kafka-replicas: 0 or more")
	case !topicPrefix.MatchString(c.Services.KafkaPrefix):
		return fmt.Errorf("--kafka-prefix: at most 200 letters, digits, dots, hyphens " +
			"and underscores")
	case c.Cluster.Bootstrap && len(c.Roles) > 0 &&
		!slices.Contains(c.Roles, identity.ControlPlane):
		return ErrFounder
	}
	return c.checkAddresses()
}

// topicPrefix leaves room for the rest of a topic's name: Kafka allows 249 characters.
var topicPrefix = regexp.MustCompile(`^[A-Za-z0-9._-]{0,200}$`)

// ErrFounder refuses --bootstrap on a node without the control plane.
var ErrFounder = errors.New("--bootstrap: only a node with the role " + identity.ControlPlane +
	" creates the cluster")

func isCollector(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != ""
}

// checkAddresses refuses unreachable addresses: nothing else would reveal such a mistake.
func (c *Command) checkAddresses() error {
	for _, one := range []struct{ flag, address string }{
		{"--cluster-listen", c.Cluster.Listen}, {"--gossip-listen", c.Cluster.GossipListen},
	} {
		if _, err := hostPort(one.address); err != nil {
			return fmt.Errorf("%s: %w", one.flag, err)
		}
	}
	for _, address := range c.Cluster.Join {
		if host, err := hostPort(address); err != nil || !isHost(host) {
			return fmt.Errorf("--join: %q: %w", address, cmp.Or(err, errNoHost))
		}
	}
	if c.Cluster.Advertise != "" && !isHost(c.Cluster.Advertise) {
		return fmt.Errorf("--advertise: %q: want a host name or an IP address, without a port",
			c.Cluster.Advertise)
	}
	return nil
}

var errNoHost = errors.New("want HOST:PORT, with a host name or an IP address")

// hostPort returns the host of an address whose port others can call.
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

// isHost says whether text may be a host name or an IP address.
func isHost(text string) bool {
	return net.ParseIP(text) != nil || hostName.MatchString(text)
}

// roles returns the named roles, each once, in the order of identity.Roles; none if none is named.
func (c *Command) roles() []string {
	return slices.DeleteFunc(identity.Roles(),
		func(role string) bool { return !slices.Contains(c.Roles, role) })
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

// config combines the flags: a standalone process has all roles, and serves the self-hosting
// customer.
func (c *Command) config() Config {
	config := c.Config
	config.Roles = c.roles()
	if c.Cluster.alone() {
		config.SelfKey = true
		if len(config.Roles) == 0 {
			config.Roles = identity.Roles()
		}
	}
	return config
}

// Runner runs the roles of one process until ctx ends, and then stops them in order; nil after a
// clean stop.
type Runner func(ctx context.Context, config Config) error

// Serve runs the roles until the context ends, and keeps the address file while calls are served.
// ready gets the base address of the API, "" without an API server.
func Serve(ctx context.Context, t *terminal.Terminal, run Runner, config Config,
	ready func(server string)) error {
	withdraw := func() {}
	config.Notice = func(text string) { t.Notef("shoal: %s", text) }
	config.Ready = func(listening string) {
		if listening == "" {
			ready("")
			return
		}
		server := config.TLS.scheme() + "://" + datadir.Reachable(listening)
		published := server
		if config.AdminListen != "" {
			published = "http://" + datadir.Reachable(config.AdminListen)
		}
		undo, err := datadir.Publish(config.Data, published)
		if err != nil {
			t.Notef("shoal: %v", err)
			undo = func() {}
		}
		withdraw = undo
		ready(server)
	}
	err := run(ctx, config)
	withdraw()
	return err
}

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// ServeConfig is what a process of the service is told. runServe (modules.go) makes the roles from it.
type ServeConfig struct {
	Data   string // directory, made when missing
	Listen string // HOST:PORT of the API; port 0 takes a free one
	Roles  []string

	EgressAllow []netip.Prefix    // private ranges that may be reached all the same
	Origins     map[string]string // host or *.suffix → IP:PORT that is dialled instead of asking DNS

	HostRate           float64 // request starts per second that a host gets, unless a scraper says otherwise
	HostConnections    int
	MaxHostRate        float64 // what a scraper may ask for
	MaxHostConnections int
	NoRateLimits       bool // of API calls

	// SnapshotEntries is after how many Raft entries a snapshot is taken; it is looked at every so many milliseconds, too.
	// 0: the control plane's own measure.
	SnapshotEntries uint64

	// Ready is called once, when calls are served, with the address that is listened on. It may be nil.
	Ready func(listening string)
}

// roleNames are the roles that a process can have.
func roleNames() []string {
	return []string{"controlplane", "fetcher", "ingest", "billing", "apiserver"}
}

type serveCommand struct {
	Data   string   `help:"Directory of everything that is kept." default:"./data" placeholder:"DIR"`
	Listen string   `help:"Address of the API." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Roles  []string `help:"Roles of this process. Fewer than all need Kafka and ClickHouse." default:"controlplane,fetcher,ingest,billing,apiserver" placeholder:"ROLE"`

	EgressAllow        []netip.Prefix    `help:"Private ranges that may be reached all the same; none by default." placeholder:"CIDR"`
	EgressOrigin       map[string]string `hidden:"" mapsep:"," help:"Hosts that are dialled at a fixed place instead of asking DNS: HOST=IP:PORT or *.SUFFIX=IP:PORT. For test webs."`
	HostRate           float64           `help:"Request starts per second that a host gets, unless a scraper says otherwise." default:"1"`
	HostConnections    int               `help:"Connections that a host gets, unless a scraper says otherwise." default:"2"`
	MaxHostRate        float64           `help:"Most request starts per second that a scraper may ask for." default:"10"`
	MaxHostConnections int               `help:"Most connections to a host that a scraper may ask for." default:"8"`
	NoRateLimits       bool              `help:"Do not limit how often API calls may be made."`

	RaftSnapshotEntries uint64 `hidden:"" help:"Raft entries after which a snapshot is taken, looked at every so many milliseconds. For tests."`
}

// Help teaches the command.
func (*serveCommand) Help() string {
	return `The first start makes the self-hosting customer and writes its API key to DIR/api-key; while the service runs,
DIR/address says where. The other commands read both. SIGTERM and Ctrl-C stop it cleanly.

Examples:

  shoal serve
  shoal serve --data /var/lib/shoal --listen 0.0.0.0:8080
  shoal serve --egress-allow 10.20.0.0/16 --max-host-rate 50     # sites of your own network, faster`
}

// Validate checks what a flag alone cannot.
func (c *serveCommand) Validate() error {
	for _, role := range c.Roles {
		if !slices.Contains(roleNames(), role) {
			return fmt.Errorf("--roles: %q is none of %s", role, strings.Join(roleNames(), ", "))
		}
	}
	// Each once, so that their number says whether some are missing.
	c.Roles = slices.DeleteFunc(roleNames(), func(role string) bool { return !slices.Contains(c.Roles, role) })
	if len(c.Roles) == 0 {
		return fmt.Errorf("--roles: at least one")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("--listen: want HOST:PORT: %w", err)
	}
	for host, to := range c.EgressOrigin {
		if _, err := netip.ParseAddrPort(to); err != nil {
			return fmt.Errorf("--egress-origin: %s: want IP:PORT: %w", host, err)
		}
	}
	switch {
	case !(c.HostRate > 0) || c.HostRate > c.MaxHostRate:
		return fmt.Errorf("--host-rate: above 0 and at most --max-host-rate (%g)", c.MaxHostRate)
	case c.HostConnections < 1 || c.HostConnections > c.MaxHostConnections:
		return fmt.Errorf("--host-connections: at least 1 and at most --max-host-connections (%d)", c.MaxHostConnections)
	}
	return nil
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, t *terminal) error {
	return t.serve(ctx, ServeConfig{
		Data: c.Data, Listen: c.Listen, Roles: c.Roles,
		EgressAllow: c.EgressAllow, Origins: c.EgressOrigin,
		HostRate: c.HostRate, HostConnections: c.HostConnections,
		MaxHostRate: c.MaxHostRate, MaxHostConnections: c.MaxHostConnections,
		NoRateLimits: c.NoRateLimits, SnapshotEntries: c.RaftSnapshotEntries,
	}, func(server string) {
		t.notef("Serving %s\nAPI key in %s/%s. Ctrl-C stops.", server, c.Data, keyFile)
	})
}

// serve runs the roles until the context ends, with the address file in place as long as calls are served.
func (t *terminal) serve(ctx context.Context, config ServeConfig, ready func(server string)) error {
	withdraw := func() {}
	config.Ready = func(listening string) {
		server, undo, err := publishAddress(config.Data, listening)
		if err != nil {
			t.notef("shoal: %v", err)
			server, undo = "http://"+reachable(listening), func() {}
		}
		withdraw = undo
		ready(server)
	}
	err := t.service.run(ctx, config)
	withdraw()
	return err
}

package service

import (
	"context"
	"net"
	"os"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/version"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/testkit/slowdisk"
)

// buildState makes the control plane's part in this process. Only that role opens the log and the
// row store for its leader. Whatever is open must belong to the cluster.
func (n *node) buildState(ctx context.Context) error {
	shared, err := n.services.identify(ctx)
	if err != nil {
		return err
	}
	settings := n.stateSettings(shared)
	if settings.DomainOf, err = readDomain(); err != nil {
		return err
	}
	if n.control, err = controlplane.New(settings); err != nil {
		return err
	}
	client := n.control.Client()
	n.services.state.Store(&client)
	return nil
}

func (n *node) statePart() lifecycle.Part {
	return lifecycle.Part{Name: identity.ControlPlane, Run: n.control.Run, Ready: n.control.Ready()}
}

// stateSettings are the settings of the control plane's part in this process.
func (n *node) stateSettings(shared controlplane.Services) controlplane.Config {
	config, cluster := &n.config, &n.config.Cluster
	settings := controlplane.Defaults()
	settings.Dir, settings.Node, settings.Boot, settings.Roles = config.Data, n.name, n.boot,
		config.Roles
	settings.Version, settings.Metrics, settings.Tracer = version.String(), n.metrics, n.tracer
	settings.Logger = n.forRole("controlplane")
	if n.has("fetcher") {
		settings.Capacity, settings.Tiers = cluster.Capacity, n.web.Tiers()
	}
	if !cluster.alone() {
		host := cluster.advertised()
		_, port, _ := net.SplitHostPort(cluster.Listen) // the flags were checked
		settings.Cluster = &controlplane.Cluster{Identity: n.identity, Listen: cluster.Listen,
			Advertise: net.JoinHostPort(host, port), GossipListen: cluster.GossipListen,
			GossipAdvertise: host,
			Join:            cluster.Join, Bootstrap: cluster.Bootstrap,
			LeaveOnStop: cluster.LeaveOnStop}
	}
	settings.Clock, settings.IDs, settings.Services = n.clock, n.ids, shared
	settings.Services.Rebind = config.RebindServices
	settings.Log, settings.Store, settings.Point = n.records, n.services.store, n.point
	settings.BeforeWrite, settings.ElectionTimeout = slowdisk.FromEnv(os.Getenv),
		cluster.ElectionTimeout
	if floor := n.floor(); floor != nil {
		settings.Disk, settings.RowsFloor = n.disk, floor
	}
	settings.HostRate, settings.MaxHostRate = config.HostRate, config.MaxHostRate
	settings.HostOf, settings.ShardOf = authorityOf, shardBy(int(settings.Shards))
	settings.Backups = n.backups()
	if n.services.blobs != nil { // a nil pointer would make a non-nil interface
		settings.Blobs = n.services.blobs
	}
	if config.FetchTimeout > 0 {
		// covers a try that has begun, and some margin
		settings.FetchDeadline = 2 * config.FetchTimeout
	}
	if config.Lease > 0 {
		settings.Lease, settings.EndWithin = config.Lease, max(config.Lease/10, time.Second/2)
	}
	if config.MarkerEvery > 0 {
		settings.MarkerEvery = config.MarkerEvery
	}
	if config.HistoryDays > 0 {
		settings.HistoryKept = time.Duration(config.HistoryDays) * 24 * time.Hour
	}
	if config.ArchiveEvery > 0 {
		settings.ArchiveEvery, settings.ArchiveKeep = config.ArchiveEvery, config.ArchiveKeep
	}
	if n := config.RaftSnapshotEntries; n > 0 {
		settings.Snapshots.Entries, settings.Snapshots.Every = n, time.Duration(n)*time.Millisecond
	}
	return settings
}

// advertised is where other nodes reach this one: the configured address, or the one that it
// listens on. If it listens on all addresses, it is the machine's first non-loopback address.
func (c *ClusterConfig) advertised() string {
	if c.Advertise != "" {
		return c.Advertise
	}
	host, _, _ := net.SplitHostPort(c.Listen) // the flags were checked
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	addresses, _ := net.InterfaceAddrs() // none: the loopback
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}

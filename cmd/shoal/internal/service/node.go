// Package service is one process of the service: its settings from flags to roles, what it works
// on, and its roles. It alone knows which implementations there are.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/version"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/shortdisk"
	"shoal.dev/shoal/testkit/skew"
)

// NodeName is the name of a node that is its own cluster.
const NodeName = "local"

// Run runs the roles of one process until ctx ends, and then stops them in order; nil after a clean
// stop.
func Run(ctx context.Context, config Config) error {
	stopProfile, err := profile(os.Getenv("SHOAL_CPUPROFILE"))
	if err != nil {
		return err
	}
	defer stopProfile()
	collectLessOften()
	collectInTime(os.DirFS("/"))
	return RunOn(ctx, config, nil)
}

// node is one process: what its modules are made from, and the results.
type node struct {
	config   Config
	name     string
	identity *identity.Identity // nil: the process is its own cluster
	boot     ids.ID             // identifies this start
	clock    clock.Clock
	ids      ids.Source
	*signals
	point    func(string)
	free     func(dir string) (bytes uint64, known bool) // free space of a disk
	disk     *telemetry.Disk
	stopping <-chan struct{} // closed when the process is told to stop
	listener net.Listener    // of the API; nil without that role
	admin    net.Listener    // of the API, for operators; nil: they use listener
	ops      net.Listener    // nil: no metrics endpoint

	services *Services  // the open ones
	records  stream.Log // the services' log with metrics
	egress   *egress.Client
	reader   *fetcher.Reader
	web      *fetcher.HTTPWeb
	rates    *ecb.Source
	control  *controlplane.Server
	worker   *work.Worker
	billing  *billing.Billing
	ingest   *ingest.Ingest
	fetcher  *fetcher.Fetcher
	api      *apiserver.Server

	opened []func() error // closers of what was opened, in order
}

// RunOn runs one node. on are services that it shares with other nodes in this process, and that
// outlive it; nil: it opens its own.
func RunOn(ctx context.Context, config Config, on *Services) (err error) {
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := datadir.Lock(config.Data)
	if err != nil {
		return err
	}
	defer unlock()
	clock := skew.FromEnv(os.Getenv)
	n := &node{config: config, name: NodeName, clock: clock, ids: ids.Random{Now: clock.Now},
		boot: ids.Random{Now: clock.Now}.New(), point: crash.FromEnv(os.Getenv),
		free: shortdisk.FromEnv(os.Getenv, telemetry.FreeSpace), stopping: ctx.Done()}
	n.disk = &telemetry.Disk{Dir: config.Data, Free: n.free, Floor: n.floor()}
	if err := n.identify(); err != nil {
		return err
	}
	// The roles log to a file, so that a terminal shows only progress.
	file, err := telemetry.OpenLogFile(config.Data,
		int64(cmp.Or(config.LogMB, defaultLogMB))<<20, cmp.Or(config.LogFiles, defaultLogFiles))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n.signals, err = openSignals(ctx, config, n.name, file); err != nil {
		return err
	}
	defer n.signals.close()
	began := n.clock.Now()
	n.logStart()
	defer func() { n.logStop(began, err) }()
	// Listening comes first: a taken port is the commonest mistake, and nothing has been touched
	// yet.
	if err := n.listen(); err != nil {
		return err
	}
	defer n.closeListeners()
	if n.services = on; on == nil {
		n.services = &Services{}
	}
	defer func() { err = errors.Join(err, n.close()) }()
	parts, err := n.build(ctx)
	if err != nil {
		return err
	}
	err = lifecycle.Run(ctx, parts...)
	if fault.CodeOf(err) == fault.OtherServices {
		err = fmt.Errorf("%w. --rebind-services, for the first node that starts after all were "+
			"stopped, makes them this "+
			"cluster's, whosever they were", err)
	}
	return err
}

// identify takes the node's name and roles from its identity, if it has one.
func (n *node) identify() error {
	if n.config.Cluster.alone() {
		return nil
	}
	var err error
	if n.identity, err = identity.Read(n.config.Cluster.Identity); err != nil {
		return err
	}
	if err := n.identity.Check(n.clock.Now()); err != nil {
		return err
	}
	n.name = n.identity.Node
	if len(n.config.Roles) == 0 {
		n.config.Roles = n.identity.Roles
	}
	for _, role := range n.config.Roles {
		if !n.identity.Has(role) {
			return fmt.Errorf("--roles: the identity of node %q is not good for %s", n.name, role)
		}
	}
	if n.config.Cluster.Bootstrap && !n.has(identity.ControlPlane) {
		return ErrFounder
	}
	if n.has("apiserver") {
		return apiserver.PlaceSignInKey(n.config.Data, n.identity.SignInKey)
	}
	return nil
}

// closeLater registers a closer, called once all parts have stopped.
func (n *node) closeLater(close func() error) { n.opened = append(n.opened, close) }

// close closes what modules opened, last first.
func (n *node) close() (err error) {
	for _, close := range slices.Backward(n.opened) {
		err = errors.Join(err, close())
	}
	return err
}

// floor is how much of one disk must stay free; nil: no check.
func (n *node) floor() *telemetry.Floor {
	if n.config.FreeMB == 0 {
		return nil
	}
	return telemetry.NewFloor(uint64(n.config.FreeMB) << 20)
}

// about describes the process.
func (n *node) about() telemetry.Node {
	about := telemetry.Node{Name: n.name, Roles: n.config.Roles, Version: version.String(),
		Disk: n.disk}
	if n.identity != nil {
		about.CertificateExpires = n.identity.Expires()
	}
	return about
}

func (n *node) has(role string) bool { return slices.Contains(n.config.Roles, role) }

// stopWithin is how long a stop may take: long enough to hand over, if another node can take over.
func (c *Config) stopWithin() time.Duration {
	stop := cmp.Or(c.StopWithin, fetcher.DefaultStopWithin)
	if c.Cluster.alone() {
		return min(stop, aloneStop)
	}
	return stop
}

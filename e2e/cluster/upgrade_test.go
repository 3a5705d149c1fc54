//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// The upgrade's load: each lane has one run after the other, each as long as politeness makes it,
// until the upgrades are done.
const (
	upgradeLanes   = 2
	upgradeRuns    = 16 // per lane, at most
	upgradeHosts   = 30 // of a run
	upgradeRate    = 2  // request starts per second and host
	upgradePages   = 40 // of each host
	upgradeCallers = 2  // of each kind
	uploadPages    = 20
	callLimit      = 20 * time.Second // a caller's patience for an answer
	betweenCalls   = 150 * time.Millisecond
	healthEvery    = 100 * time.Millisecond
	stopGrace      = time.Second // of an API server, for the balancer to notice
)

// TestRollingUpgrade upgrades a cluster of the previous release, process by process in the order of
// deploy/UPGRADE.md. With -roll-back it is first rolled back, before the last node is upgraded.
// Then the cluster's version becomes active, and the previous release is refused. Meanwhile runs go
// on and clients call through a balancer.
//
// The balancer may try another server when a connection is refused, and sends nothing to a server
// that is not ready. It may do nothing else. A call that reached a server is made once. Every call
// must succeed, including those begun before the server was told to stop. No page may be lost,
// stored twice or requested twice. No two fetchers may use a host at once, and no client's change
// may be made twice.
func TestRollingUpgrade(t *testing.T) {
	services(t) // first: without them nothing needs to be built
	before, this := releaseBefore(t), binary(t)
	u := newUpgrade(t, before)
	crawled, called := u.crawl(), u.call()
	u.upgradeBut(this, 1)
	u.isAt(1)
	if *rollBack {
		u.rollBack(before)
	}
	u.upgradeBut(this, 0)
	u.becomesActive(2)
	u.refuses(before, this)
	crawled()
	called()
	u.exact()
}

// upgrade is a cluster being upgraded.
type upgrade struct {
	t        *testing.T
	c        *cluster.Cluster
	ctx      context.Context
	balancer *balancer
	admin    suite.Client
	lanes    [][]*scaleRun
	uploads  []*upload
	next     chan *upload // not begun yet
	small    *synthweb.Web

	mu      sync.Mutex
	begun   []*scaleRun // launched runs
	stopped bool        // no more are launched
}

// upload is a list that a server receives while it is told to stop.
type upload struct {
	*scaleRun
	query url.Values
}

// newUpgrade makes a cluster of a binary.
func newUpgrade(t *testing.T, binary string) *upgrade {
	t.Helper()
	network := newNetwork(t)
	small := newWeb(t, network,
		synthweb.Config{Hosts: uploadPages, PagesPerHost: 10, PageBytes: []int{3000},
			Suffix: "small"})
	webs := []*synthweb.Web{small}
	for i := range upgradeLanes * upgradeRuns {
		webs = append(webs, newWeb(t, network,
			synthweb.Config{Hosts: upgradeHosts, PagesPerHost: upgradePages, Seed: uint64(i),
				PageBytes: []int{3000}, MaxLatency: 60 * time.Millisecond,
				Suffix: fmt.Sprint("load", i)}))
	}
	nodes := cluster.Layout(3, 2, 2, 2, 2)
	for i, n := range nodes {
		nodes[i].Binary = binary
		if n.Roles[0] != cluster.ControlPlane {
			nodes[i].Args = []string{"--leave-on-stop"}
		}
		if n.Roles[0] == cluster.APIServer {
			nodes[i].Args = append(nodes[i].Args, "--stop-grace", stopGrace.String())
		}
	}
	c := newClusterOn(t, network, binary, newPrefix(), nodes,
		[]string{"--host-rate", fmt.Sprint(upgradeRate)}, webs...)
	start(t, c)
	u := &upgrade{t: t, c: c, ctx: suite.Within(t, 4*aboutGoal), small: small}
	u.balancer = newBalancer(u.ctx, t, c)
	u.admin = u.client("--admin")
	for lane := range slices.Chunk(webs[1:], upgradeRuns) {
		var runs []*scaleRun
		for _, web := range lane {
			customer := fmt.Sprintf("lane%d-%d", len(u.lanes), len(runs))
			runs = append(runs,
				u.run(web, slices.Collect(web.URLs(upgradeHosts*upgradePages)), customer))
		}
		u.lanes = append(u.lanes, runs)
	}
	stops := len(c.With(cluster.APIServer))
	if *rollBack {
		stops *= 3
	}
	u.next = make(chan *upload, stops)
	for urls := range slices.Chunk(slices.Collect(small.URLs(uploadPages*cap(u.next))),
		uploadPages) {
		r := &upload{scaleRun: u.run(small, urls, fmt.Sprint("upload", len(u.uploads)))}
		r.query = suite.Must(r.o.Query(u.ctx))(t)
		u.uploads = append(u.uploads, r)
		u.next <- r
	}
	return u
}

// client calls through the balancer as a customer or administrator; args are the arguments of
// 'shoal token'.
func (u *upgrade) client(args ...string) suite.Client {
	u.t.Helper()
	token := suite.Must(mint(u.ctx, u.c, args...))(u.t)
	return suite.Client{Server: cluster.Balanced, HTTP: &http.Client{Transport: u.balancer},
		Token: token}
}

// run makes a customer with money, and prepares its run.
func (u *upgrade) run(web *synthweb.Web, urls []string, customer string) *scaleRun {
	u.t.Helper()
	r := &scaleRun{t: u.t, c: u.c, web: web, ctx: u.ctx, who: u.client("--customer", customer)}
	r.o = suite.ProductOrder(r.who, urls)
	if err := u.admin.Adjust(u.ctx, suite.Must(r.who.Whoami(u.ctx))(u.t),
		suite.Plenty); err != nil {
		u.t.Fatal(err)
	}
	return r
}

// crawl keeps a run going in each lane; it returns once some are. stop launches no more, and waits
// for those in progress.
func (u *upgrade) crawl() (stop func()) {
	u.t.Helper()
	ended, going := make(chan error, len(u.lanes)), make(chan struct{}, len(u.lanes)*upgradeRuns)
	for _, lane := range u.lanes {
		go func() { ended <- u.crawlLane(lane, going) }()
	}
	for range u.lanes {
		select {
		case <-going:
		case err := <-ended:
			u.t.Fatal(err)
		}
	}
	return func() {
		u.t.Helper()
		u.mu.Lock()
		u.stopped = true
		u.mu.Unlock()
		for range u.lanes {
			if err := <-ended; err != nil {
				u.t.Error(err)
			}
		}
	}
}

// crawlLane launches one run after the other. Each of its calls must succeed, too.
func (u *upgrade) crawlLane(lane []*scaleRun, going chan<- struct{}) error {
	for _, r := range lane {
		query, err := r.o.Query(u.ctx)
		if err == nil {
			r.run, err = r.who.RunList(u.ctx, query, r.o.Body())
		}
		if err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		u.mu.Lock()
		u.begun = append(u.begun, r)
		u.mu.Unlock()
		going <- struct{}{}
		for {
			record, err := r.who.Job(u.ctx, r.run)
			if err != nil {
				return fmt.Errorf("record of a run: %w", err)
			}
			if model.JobState(record.State).Final() {
				break
			}
			select {
			case <-u.ctx.Done():
				return fmt.Errorf("a run is still %s: %w", record.State, u.ctx.Err())
			case <-time.After(lookEvery):
			}
		}
		u.mu.Lock()
		stopped := u.stopped
		u.mu.Unlock()
		if stopped {
			return nil
		}
	}
	return errors.New("all runs of a lane ended before the upgrades were done")
}

// newest returns the run launched last.
func (u *upgrade) newest() *scaleRun {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.begun[len(u.begun)-1]
}

// upgradeBut replaces one process after the other, except for kept nodes of the control plane,
// including its leader.
func (u *upgrade) upgradeBut(binary string, kept int) {
	u.t.Helper()
	begin := time.Now()
	for _, role := range []string{cluster.Fetcher, cluster.Ingest, cluster.Billing,
		cluster.APIServer} {
		if err := u.roll(role, binary, 0); err != nil {
			u.t.Fatal(err)
		}
	}
	if err := u.roll(cluster.ControlPlane, binary, kept); err != nil {
		u.t.Fatal(err)
	}
	u.t.Logf("upgraded but %d by hand: %v", kept, time.Since(begin).Round(time.Millisecond))
}

// rollBack replaces them in reverse order.
func (u *upgrade) rollBack(binary string) {
	u.t.Helper()
	begin := time.Now()
	for _, role := range []string{cluster.ControlPlane, cluster.APIServer, cluster.Billing,
		cluster.Ingest, cluster.Fetcher} {
		if err := u.roll(role, binary, 0); err != nil {
			u.t.Fatal(err)
		}
	}
	u.t.Logf("rolled back by hand: %v", time.Since(begin).Round(time.Millisecond))
}

// activeVersion is the metric of the cluster's version, which nodes of the previous release lack.
const activeVersion = "shoal_controlplane_cluster_version"

// isAt requires every upgraded control-plane node to report this version as active.
func (u *upgrade) isAt(version float64) {
	u.t.Helper()
	told := 0
	for _, n := range u.c.With(cluster.ControlPlane) {
		active, tells := suite.Must(n.Metrics(u.ctx))(u.t)[activeVersion]
		if tells && active != version {
			u.t.Errorf("%s: version %v is active, want %v", n.Name, active, version)
		}
		if tells {
			told++
		}
	}
	if told != len(u.c.With(cluster.ControlPlane))-1 {
		u.t.Errorf("%d nodes of the control plane are upgraded", told)
	}
}

// becomesActive waits until all control-plane nodes have a version.
func (u *upgrade) becomesActive(version float64) {
	u.t.Helper()
	for _, n := range u.c.With(cluster.ControlPlane) {
		for {
			metrics := suite.Must(n.Metrics(u.ctx))(u.t)
			if metrics[activeVersion] == version {
				break
			}
			select {
			case <-u.ctx.Done():
				u.t.Fatalf("%s: version %v is active", n.Name, metrics[activeVersion])
			case <-time.After(lookEvery):
			}
		}
	}
}

// refuses starts the previous release in the place of nodes. A fetcher that left is unknown: the
// leader does not admit it, and says why. A fetcher that was not removed in time gets the
// activation, like a control-plane node. It then ends and says so. The rows' schema changes soon
// after the activation, so a control-plane node may meet that first.
func (u *upgrade) refuses(before, this string) {
	u.t.Helper()
	leads := suite.Must(u.c.Leader(u.ctx))(u.t)
	start := func(n *cluster.Node, binary string) {
		n.Binary = binary
		if err := n.Start(); err != nil {
			u.t.Fatal(err)
		}
	}
	follows := slices.IndexFunc(u.c.With(cluster.ControlPlane),
		func(n *cluster.Node) bool { return n != leads })
	fetcher, follower := u.c.With(cluster.Fetcher)[1], u.c.With(cluster.ControlPlane)[follows]
	for _, n := range []*cluster.Node{fetcher, follower} {
		if err := n.Stop(stopLimit); err != nil {
			u.t.Fatal(err)
		}
		start(n, before)
		ends := saying{n, "is not known"}
		if n == fetcher {
			u.hears(ends, saying{leads,
				"a node cannot join: its binary is older than the cluster's version"})
			n.Kill()
		} else {
			u.hears(ends, saying{n, "the database has schema version"})
			<-n.Ended()
		}
		start(n, this)
		if err := n.Ready(u.ctx); err != nil {
			u.t.Fatal(err)
		}
	}
}

// saying is an expected message of a node.
type saying struct {
	node *cluster.Node
	what string
}

// hears waits until one of several messages has been logged.
func (u *upgrade) hears(one ...saying) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.ctx, settleTime)
	defer cancel()
	said := func(s saying) bool { return strings.Contains(s.node.Said(), s.what) }
	for !slices.ContainsFunc(one, said) {
		select {
		case <-ctx.Done():
			for _, s := range one {
				u.t.Errorf("%s does not say %q:\n%s", s.node.Name, s.what, s.node.Said())
			}
			u.t.FailNow()
		case <-time.After(lookEvery):
		}
	}
}

// roll replaces the processes of a role except the last kept ones. Each waits until the one before
// is ready; the leader comes last. Nodes that already run the binary stay.
func (u *upgrade) roll(role, binary string, kept int) error {
	nodes := u.c.With(role)
	if role == cluster.ControlPlane {
		leads, err := u.c.Leader(u.ctx)
		if err != nil {
			return err
		}
		nodes = append(slices.DeleteFunc(nodes, func(n *cluster.Node) bool { return n == leads }),
			leads)
	}
	for _, n := range nodes[:len(nodes)-kept] {
		if n.Binary == binary {
			continue
		}
		if err := u.replace(n, role, binary); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// replace replaces one process. An API server is in the middle of a list when it is told to stop.
func (u *upgrade) replace(n *cluster.Node, role, binary string) error {
	stop := func() error { return n.Stop(stopLimit) }
	if role == cluster.APIServer {
		stop = func() error { return u.uploadAcross(n) }
	}
	begin := time.Now()
	if err := stop(); err != nil {
		return err
	}
	stopped := time.Now()
	n.Binary = binary
	if err := n.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(u.ctx, settleTime)
	defer cancel()
	err := n.Ready(ctx)
	u.t.Logf("%-7s stopped in %v, ready in %v", n.Name, stopped.Sub(begin).Round(time.Millisecond),
		time.Since(stopped).Round(time.Millisecond))
	return err
}

// exact ends everything and compares it with the webs.
func (u *upgrade) exact() {
	u.t.Helper()
	for _, r := range u.begun {
		r.finish()
		apart(u.t, r.web)
		r.exact(0)
	}
	for _, r := range u.uploads {
		r.finish()
		reported := suite.Must(r.who.Report(u.ctx, r.run))(u.t)
		suite.Check(u.t, recount.Run{Web: u.small, URLs: r.o.URLs, Price: suite.PlainPrice,
			Free: suite.FreeGrant, Shared: true},
			reported)
	}
	for _, asked := range suite.Must(u.small.Recount())(u.t).URLs {
		if asked.Requests > 1 {
			u.t.Errorf("a page of the uploads was asked for %d times", asked.Requests)
		}
	}
	runs, differ, err := u.admin.RecountOfProduct(u.ctx)
	if err != nil || runs != len(u.begun)+len(u.uploads) || differ > 0 {
		u.t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
	if err := u.c.SameState(u.ctx); err != nil {
		u.t.Error(err)
	}
}

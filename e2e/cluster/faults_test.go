//go:build linux

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/netns"
)

// Targets besides the roles and services.
const (
	leader   = "leader"
	follower = "follower"
)

// repeats says which pages a fault may cause to be fetched again.
type repeats int

const (
	nothing  repeats = iota
	ofVictim         // pages that the victim had in flight
	ofLapse          // pages in flight when the leases of all fetchers ended
	anything         // pages whose records the log lost
)

// mostInFlight is the most pages that a fetcher has fetched but not published when it ends. These
// are two connections to each host of the five webs, and one batch of the log.
const mostInFlight = 2*5*loadHosts + 50

// mostLapsed is the most pages of one web that fetchers had in flight when their leases ended. Each
// connection had one, and as many were fetched and not published.
const mostLapsed = 2 * 2 * loadHosts

// Durations of faults.
const (
	short = 3 * time.Second
	// pastLease is long enough for the shards of a silent fetcher to move.
	pastLease = lease + 2*fetchTime + 2*time.Second
	// leaderAway is long enough for all leases to end.
	leaderAway = lease + 5*time.Second
	// slowElection is how long a write may wait for a leader that is elected on slow disks.
	slowElection = 2 * time.Minute
	diskBytes    = 192 << 20
	tooLittle    = 6 << 20 // bytes of memory
)

// fault is one row of the matrix. To add one, write a function that strikes and heals, and a line
// in faults.
type fault struct {
	name    string
	targets []string // where it makes sense
	ci      []string // the targets that CI runs
	repeats repeats
	nodes   func([]cluster.Spec) // changes the layout; may be nil
	// whole: no run ends before its list does. A run that ends early after a restore is sealed only
	// a day later, when rows beyond its ledger are not needed for another restore.
	whole  bool
	strike func(c *cell)
}

// faults is the matrix.
func faults() []fault {
	nodes := []string{leader, follower, cluster.Fetcher, cluster.Ingest, cluster.Billing,
		cluster.APIServer}
	backends := []string{cluster.Kafka, cluster.Redis, cluster.ClickHouse}
	return []fault{
		{name: "kill", targets: nodes, ci: []string{leader, cluster.Fetcher}, repeats: ofVictim,
			strike: kill},
		{name: "pause", targets: nodes, repeats: ofVictim, strike: pause},
		{name: "leader-change", targets: []string{leader}, strike: changeLeader},
		{name: "cut-out", targets: nodes, repeats: ofVictim, strike: cutOut},
		{name: "cut-in", targets: nodes, repeats: ofVictim, strike: cutIn},
		{name: "cut", targets: nodes, repeats: ofVictim, strike: cut},
		{name: "cut-service", targets: nodes, repeats: ofVictim,
			strike: cutServices(netns.Requests, netns.Answers)},
		{name: "cut-service-out", targets: nodes, repeats: ofVictim,
			strike: cutServices(netns.Requests)},
		{name: "cut-service-in", targets: nodes, repeats: ofVictim,
			strike: cutServices(netns.Answers)},
		{name: "broker", targets: []string{cluster.Kafka}, strike: loseBroker},
		{name: "restart", targets: backends, strike: restartService},
		{name: "down", targets: backends, strike: stopService},
		{name: "freeze", targets: backends, strike: freezeService},
		{name: "cut-off", targets: backends, strike: cutOff},
		{name: "lose-log", targets: []string{cluster.Kafka}, ci: []string{cluster.Kafka},
			repeats: anything, strike: loseLog},
		{name: "outage", targets: []string{cluster.ClickHouse}, strike: outageOfRows},
		{name: "wipe", targets: []string{cluster.Redis}, ci: []string{cluster.Redis},
			strike: wipeRedis},
		{name: "disk-full", targets: nodes, repeats: ofVictim, nodes: ownDisks, strike: fillDisk},
		{name: "clock-ahead", targets: nodes, strike: stepClock(10 * time.Minute)},
		{name: "clock-back", targets: nodes, strike: stepClock(-10 * time.Minute)},
		{name: "slow", targets: append([]string{cluster.Fetcher, cluster.Ingest, cluster.Billing},
			backends...),
			strike: slowDown},
		{name: "poison", targets: []string{cluster.Kafka}, strike: poison},
		{name: "repeat", targets: []string{cluster.Kafka}, strike: repeatLog},
		{name: "no-majority", targets: []string{leader}, repeats: ofLapse, strike: pauseFollowers},
		{name: "slow-disks-300ms", targets: []string{leader}, repeats: ofLapse,
			strike: slowDisks(300 * time.Millisecond)},
		{name: "slow-disks-700ms", targets: []string{leader}, repeats: ofLapse,
			strike: slowDisks(700 * time.Millisecond)},
		{name: "slow-disks-2s", targets: []string{leader}, repeats: ofLapse,
			strike: slowDisks(2 * time.Second)},
		{name: "memory", targets: nodes, repeats: ofVictim, strike: squeezeMemory},
		{name: "restore", targets: nodes, repeats: anything, whole: true,
			strike: besideRestore(kill)},
		{name: "restore-lose-log", targets: []string{cluster.Kafka}, repeats: anything, whole: true,
			strike: besideRestore(loseLog)},
		{name: "restore-broker", targets: []string{cluster.Kafka}, repeats: anything, whole: true,
			strike: besideRestore(loseBroker)},
		{name: "restore-restart", targets: backends, repeats: anything, whole: true,
			strike: besideRestore(restartService)},
	}
}

// TestFaults is the matrix: each cell runs with each seed on its own cluster. The cells of CI's
// selection run one after the other on one cluster.
func TestFaults(t *testing.T) {
	services(t)
	if *faultSet == "ci" {
		t.Run("ci", testSelection)
		return
	}
	first, each := shareOf(t, *faultSet)
	cell := 0
	for _, f := range faults() {
		for _, target := range f.targets {
			if cell++; cell%each != first%each {
				continue
			}
			for seed := *faultSeed; seed < *faultSeed+*faultSeeds; seed++ {
				t.Run(fmt.Sprintf("%s/%s/%d", f.name, target, seed), func(t *testing.T) {
					g := newGround(t, f.nodes, seed)
					if f.whole {
						whole(g.loads[0])
					}
					g.newCell(t, target, seed).run(f)
				})
			}
		}
	}
}

// shareOf reads which cells of the matrix are asked for: all, or every each-th cell from first.
func shareOf(t *testing.T, set string) (first, each int) {
	if set == "all" {
		return 1, 1
	}
	if n, err := fmt.Sscanf(set, "%d/%d", &first, &each); n != 2 || first < 1 || each < first {
		t.Fatalf("-faults is ci, all, or a share like 2/8, not %q: %v", set, err)
	}
	return first, each
}

func testSelection(t *testing.T) {
	var seeds []uint64
	for _, f := range faults() {
		for range f.ci {
			seeds = append(seeds, *faultSeed+uint64(len(seeds)))
		}
	}
	g := newGround(t, nil, seeds...)
	for _, f := range faults() {
		for _, target := range f.ci {
			seed := seeds[len(seeds)-len(g.loads)]
			if !t.Run(f.name+"/"+target, func(t *testing.T) { g.newCell(t, target, seed).run(f) }) {
				return // later cells would fail because of this fault
			}
		}
	}
}

func kill(c *cell) {
	c.victim.Kill()
	c.hold(short)
	c.must(c.victim.Start())
}

func pause(c *cell) {
	c.must(c.victim.Pause())
	c.hold(pastLease)
	c.must(c.victim.Resume())
}

// changeLeader stops the leader like an operator.
func changeLeader(c *cell) { c.must(c.victim.Restart(stopLimit)) }

// cutOut drops what the victim sends to the other nodes; it still hears them.
func cutOut(c *cell) { c.partition(true, false) }

// cutIn drops what the others send to the victim; they still hear it.
func cutIn(c *cell) { c.partition(false, true) }

func cut(c *cell) { c.partition(true, true) }

func (c *cell) partition(out, in bool) {
	c.t.Helper()
	one, others := []*cluster.Node{c.victim}, c.Others(c.victim)
	if out {
		c.must(c.Cut(one, others))
	}
	if in {
		c.must(c.Cut(others, one))
	}
	c.hold(pastLease)
	if out {
		c.must(c.Heal(one, others))
	}
	if in {
		c.must(c.Heal(others, one))
	}
}

// cutServices cuts the given directions between the victim and one service, or all of them, by the
// seed.
func cutServices(ways ...netns.Direction) func(c *cell) {
	return func(c *cell) {
		all := []string{cluster.Kafka, cluster.Redis, cluster.ClickHouse}
		if one := c.random.IntN(2 * len(all)); one < len(all) {
			all = all[one : one+1]
		}
		c.t.Logf("%s is cut off %v", c.victim.Name, all)
		for _, service := range all {
			for _, way := range ways {
				c.victim.CutService(service, way)
				defer c.victim.HealService(service, way)
			}
		}
		c.hold(pastLease)
	}
}

// cutOff cuts a service from all nodes, in one direction or both by the seed.
func cutOff(c *cell) {
	ways := [][]netns.Direction{{netns.Requests}, {netns.Answers},
		{netns.Requests, netns.Answers}}[c.random.IntN(3)]
	for _, n := range c.Nodes() {
		for _, way := range ways {
			n.CutService(c.target, way)
			defer n.HealService(c.target, way)
		}
	}
	c.hold(pastLease)
}

func restartService(c *cell) { c.stopFor(short) }

func stopService(c *cell) { c.stopFor(pastLease) }

// stopFor kills a service and starts it again.
func (c *cell) stopFor(d time.Duration) {
	c.t.Helper()
	c.must(c.Services().Kill(c.ctx, c.target))
	defer func() { c.must(c.Services().Start(c.ctx, c.target)) }()
	c.hold(d)
}

// loseBroker kills one broker and starts it again. With three brokers, nothing has to wait for it.
func loseBroker(c *cell) {
	broker := c.random.IntN(len(c.Services().Brokers))
	c.must(c.Services().KillBroker(c.ctx, broker))
	c.hold(pastLease)
	c.must(c.Services().StartBroker(c.ctx, broker))
}

func freezeService(c *cell) { c.freeze(pastLease) }

// outageOfRows freezes or kills the row store, by the seed. The outage is so long that nothing may
// be concluded from its silence.
func outageOfRows(c *cell) {
	if c.random.IntN(2) == 0 {
		c.freeze(*outage)
	} else {
		c.stopFor(*outage)
	}
}

func (c *cell) freeze(d time.Duration) {
	c.t.Helper()
	c.must(c.Services().Pause(c.ctx, c.target))
	defer func() { c.must(c.Services().Resume(c.ctx, c.target)) }()
	c.hold(d)
}

// loseLog loses every record of every topic, twice.
func loseLog(c *cell) {
	for range 2 {
		c.must(c.LoseLog(c.ctx))
		c.hold(short)
	}
}

func wipeRedis(c *cell) {
	for range 5 {
		c.must(c.Services().WipeRedis(c.ctx))
		c.hold(lookEvery)
	}
}

// ownDisks gives every node its own small disk.
func ownDisks(nodes []cluster.Spec) {
	for i := range nodes {
		nodes[i].Disk = diskBytes
	}
}

// fillDisk leaves the victim no space. A process that cannot continue may end; then it is
// restarted. A leader that cannot write must let another lead.
func fillDisk(c *cell) {
	c.must(c.victim.FillDisk())
	c.hold(pastLease)
	if now := suite.Must(c.Leader(c.ctx))(c.t); now == c.victim {
		c.t.Errorf("%s leads, and can write nothing", now.Name)
	}
	c.must(c.victim.FreeDisk())
	c.revive()
}

// revive restarts the victim if it has ended.
func (c *cell) revive() {
	c.t.Helper()
	if !c.victim.Running() {
		c.must(c.victim.Start())
	}
}

func stepClock(offset time.Duration) func(c *cell) {
	return func(c *cell) {
		c.must(c.victim.StepClock(offset))
		c.hold(pastLease)
		c.must(c.victim.StepClock(0))
	}
}

// slowDown lets the victim, or the service, run one tenth of the time.
func slowDown(c *cell) {
	for range 20 {
		if c.victim == nil {
			c.freeze(450 * time.Millisecond)
		} else {
			c.must(c.victim.Pause())
			c.hold(450 * time.Millisecond)
			c.must(c.victim.Resume())
		}
		c.hold(50 * time.Millisecond)
	}
}

// pauseFollowers leaves the leader without a majority until all leases have ended.
func pauseFollowers(c *cell) {
	for _, voter := range c.With(cluster.ControlPlane) {
		if voter != c.victim {
			c.must(voter.Pause())
			defer func() { c.must(voter.Resume()) }()
		}
	}
	c.hold(leaderAway)
}

// slowDisks kills the leader while every write of every voter's Raft takes longer. The others must
// elect a leader on these disks, and it must accept a write.
func slowDisks(delay time.Duration) func(c *cell) {
	return func(c *cell) {
		who := clientOf(c.Cluster, suite.Must(mint(c.ctx, c.Cluster, "--customer", "slow"))(c.t))
		ref := suite.Must(who.Whoami(c.ctx))(c.t)
		for _, voter := range c.With(cluster.ControlPlane) {
			c.must(voter.SlowWrites(delay))
			defer func() { c.must(voter.SlowWrites(0)) }()
		}
		c.victim.Kill()
		began := time.Now()
		writing, cancel := context.WithTimeout(c.ctx, slowElection)
		defer cancel()
		c.must(anyWrite(writing, c.admin, ref))
		c.t.Logf("a write after %v", time.Since(began).Round(time.Second))
		c.must(c.victim.Start())
	}
}

// poison writes undecodable records among the existing ones.
func poison(c *cell) {
	for range 5 {
		record := make([]byte, 1+c.random.IntN(200))
		for i := range record {
			record[i] = byte(c.random.Uint32())
		}
		c.must(c.Poison(c.ctx, record))
		c.hold(lookEvery)
	}
}

// repeatLog makes the log write its last records again, as it does when it could not confirm them.
func repeatLog(c *cell) {
	for range 2 {
		c.must(c.RepeatLog(c.ctx, 10))
		c.hold(lookEvery)
	}
}

// squeezeMemory gives the victim's next processes too little memory. The kernel kills one after the
// other, until there is enough again.
func squeezeMemory(c *cell) {
	c.must(c.victim.LimitMemory(tooLittle))
	c.victim.Kill()
	killed, over := 0, time.After(pastLease)
	for {
		c.must(c.victim.Start())
		select {
		case <-c.victim.Ended():
			killed++
			continue
		case <-over:
		}
		break
	}
	c.must(c.victim.LimitMemory(0))
	c.revive()
	if killed == 0 {
		c.t.Errorf("%s gets along with %d bytes", c.victim.Name, tooLittle)
	}
}

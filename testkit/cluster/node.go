//go:build linux

package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/skew"
	"shoal.dev/shoal/testkit/slowdisk"
)

// Ports of every node; each node has its own address.
const (
	apiPort     = 8080
	clusterPort = 7400
	gossipPort  = 7401
	opsPort     = 9090
)

// Node is one process of the cluster, and its predecessors on the same data.
type Node struct {
	Spec
	cluster   *Cluster
	namespace *netns.Namespace
	data      string
	services  map[string][]*netns.Forward
	memory    *memoryGroup

	mu     sync.Mutex
	p      *process.Process // nil before the first start
	paused bool
	said   string // output of the earlier processes
	deaths []time.Time
}

// Addr is the node's address, as seen by a synthetic web.
func (n *Node) Addr() netip.Addr { return n.namespace.Addr() }

// Ops is the address of the node's metrics, HOST:PORT.
func (n *Node) Ops() string { return n.at(opsPort).String() }

func (n *Node) at(port uint16) netip.AddrPort { return netip.AddrPortFrom(n.Addr(), port) }

func (n *Node) identity() string { return n.data + ".pem" }

func (n *Node) clockFile() string { return n.data + ".clock" }

func (n *Node) delayFile() string { return n.data + ".delay" }

// Start starts a process on the node's data. The previous one must have ended.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.cluster
	args := append(slices.Clone(c.config.Args), "--identity", n.identity(), "--advertise",
		n.Addr().String(),
		"--cluster-listen", n.at(clusterPort).String(), "--gossip-listen",
		n.at(gossipPort).String(),
		"--ops-listen", n.at(opsPort).String(),
		"--kafka-brokers", strings.Join(c.config.Services.Brokers, ","), "--kafka-prefix",
		c.config.Prefix,
		"--clickhouse-url", c.ClickHouse(), "--redis-addr", c.config.Services.Redis,
		"--redis-prefix", c.config.Prefix)
	if n == c.nodes[0] {
		args = append(args, "--bootstrap")
	}
	if n.Disk > 0 { // small disks are always below the floor
		args = append(args, "--free-mb", "0")
	}
	for _, other := range c.With(ControlPlane) {
		if other != n {
			args = append(args, "--join", other.at(gossipPort).String())
		}
	}
	if n.p != nil {
		n.said = n.p.Said()
	}
	p, err := process.Start(process.Config{Binary: cmp.Or(n.Binary, c.config.Binary), Data: n.data,
		Listen: n.at(apiPort).String(),
		Args:   append(args, n.Args...), Launch: n.launch,
		Env: append(slices.Clone(n.Env), skew.File+"="+n.clockFile(),
			slowdisk.File+"="+n.delayFile())})
	if err != nil {
		return fmt.Errorf("cluster: node %s: %w", n.Name, err)
	}
	n.p, n.paused = p, false
	return nil
}

// process returns the process that was started last.
func (n *Node) process() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.p
}

// Running says whether a process runs, paused or not.
func (n *Node) Running() bool {
	p := n.process()
	if p == nil {
		return false
	}
	select {
	case <-p.Ended():
		return false
	default:
		return true
	}
}

func (n *Node) frozen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

// Ready waits until the node serves its roles.
func (n *Node) Ready(ctx context.Context) error {
	p := n.process()
	client := n.cluster.HTTP()
	return await(ctx, "node "+n.Name+" is ready", func() error {
		select {
		case <-p.Ended():
			return fmt.Errorf("it has ended:\n%s", p.Said())
		default:
		}
		answer, err := get(ctx, client, n.ops("/api/readyz"))
		if err != nil {
			return err
		}
		return answer.Close()
	})
}

func (n *Node) ops(path string) string { return "http://" + n.at(opsPort).String() + path }

// Server returns the address of the node's API.
func (n *Node) Server() string { return "http://" + n.at(apiPort).String() }

// get makes a GET request to a node, which must answer 200.
func get(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		// Report as much as can be read.
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %s: %s", address, answer.Status, text)
	}
	return answer.Body, nil
}

// ReadFile reads a file of the node's data directory.
func (n *Node) ReadFile(name string) (content []byte, err error) {
	err = n.namespace.Do(func() error {
		content, err = os.ReadFile(filepath.Join(n.data, name))
		return err
	})
	return content, err
}

// Kill ends the process like a power cut, and waits until it is gone.
func (n *Node) Kill() {
	if p := n.process(); p != nil && n.Running() {
		p.Kill()
		n.mu.Lock()
		n.deaths = append(n.deaths, p.Died())
		n.mu.Unlock()
	}
}

// Pause freezes the process until Resume.
func (n *Node) Pause() error { return n.freeze(true, n.process().Pause) }

// Resume lets a paused process go on.
func (n *Node) Resume() error { return n.freeze(false, n.process().Resume) }

func (n *Node) freeze(paused bool, signal func() error) error {
	n.mu.Lock()
	n.paused = paused
	n.mu.Unlock()
	return signal()
}

// Stop ends the process like an operator.
func (n *Node) Stop(limit time.Duration) error {
	if _, err := n.process().Stop(limit); err != nil {
		return fmt.Errorf("cluster: node %s: %w", n.Name, err)
	}
	return nil
}

// Restart stops the process and starts another one on the same data.
func (n *Node) Restart(limit time.Duration) error {
	if err := n.Stop(limit); err != nil {
		return err
	}
	return n.Start()
}

// Ended is closed when the latest process is gone.
func (n *Node) Ended() <-chan struct{} { return n.process().Ended() }

// Usage is what the process has used so far.
func (n *Node) Usage() (process.Usage, error) { return n.process().Usage() }

// Said returns the end of the node's output: standard error of its processes, and its log.
func (n *Node) Said() string {
	p := n.process()
	if p == nil {
		return ""
	}
	logged, err := n.ReadFile("shoal.log")
	if err != nil {
		logged = []byte(err.Error())
	}
	return n.said + p.Said() + "\n" + string(logged[max(0, len(logged)-16<<10):])
}

// CutService stops one direction between the node and a service.
func (n *Node) CutService(service string, way netns.Direction) {
	for _, forward := range n.services[service] {
		forward.Cut(way)
	}
}

// HealService undoes CutService.
func (n *Node) HealService(service string, way netns.Direction) {
	for _, forward := range n.services[service] {
		forward.Heal(way)
	}
}

// StepClock sets the offset of the node's wall clock. Its monotonic clock is not affected.
func (n *Node) StepClock(offset time.Duration) error { return skew.Set(n.clockFile(), offset) }

// SlowWrites delays every write of the node's Raft by that long.
func (n *Node) SlowWrites(delay time.Duration) error { return slowdisk.Set(n.delayFile(), delay) }

// FillDisk fills the node's disk to the last byte; it must be its own disk.
func (n *Node) FillDisk() error {
	if n.Disk == 0 {
		return fmt.Errorf("cluster: node %s has no disk of its own", n.Name)
	}
	return n.namespace.Do(func() error {
		file, err := os.Create(n.filler())
		if err != nil {
			return fmt.Errorf("cluster: fill the disk: %w", err)
		}
		defer file.Close()
		for block := make([]byte, 64<<10); len(block) > 0; {
			if _, err := file.Write(block); err != nil {
				block = block[:len(block)/2] // down to the last byte
			}
		}
		return nil
	})
}

// FreeDisk removes what FillDisk wrote.
func (n *Node) FreeDisk() error {
	return n.namespace.Do(func() error {
		return os.Remove(n.filler())
	})
}

func (n *Node) filler() string { return filepath.Join(n.data, "filler") }

// Metrics reads the node's metrics by series, as they are written: name{label="value"}.
func (n *Node) Metrics(ctx context.Context) (map[string]float64, error) {
	answer, err := get(ctx, n.cluster.HTTP(), n.ops("/metrics"))
	if err != nil {
		return nil, fmt.Errorf("cluster: metrics of %s: %w", n.Name, err)
	}
	defer answer.Close()
	return parseMetrics(answer)
}

// parseMetrics reads the text format as far as it is needed here: without timestamps.
func parseMetrics(text io.Reader) (map[string]float64, error) {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 {
			continue
		}
		series, value := lines.Text()[:at], lines.Text()[at+1:]
		if number, err := strconv.ParseFloat(value, 64); err == nil &&
			!strings.HasPrefix(series, "#") {
			metrics[series] = number
		}
	}
	return metrics, lines.Err()
}

// State is a node's report about its replica.
type State struct {
	Index uint64 `json:"index"` // of the last command applied
	Hash  string `json:"hash"`  // of all state at that index
}

// State asks the node for its replica's hash.
func (n *Node) State(ctx context.Context) (State, error) {
	var state State
	answer, err := get(ctx, n.cluster.HTTP(), n.ops("/state-hash"))
	if err != nil {
		return state, fmt.Errorf("cluster: state of %s: %w", n.Name, err)
	}
	defer answer.Close()
	return state, json.NewDecoder(answer).Decode(&state)
}

// SameState waits for an index at which all running nodes have reported their hash, and fails if
// the hashes differ.
func (c *Cluster) SameState(ctx context.Context) error {
	told := map[uint64]map[string]string{} // by index, by node
	nodes := slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return !n.Running() })
	var differ error
	err := await(ctx, "all nodes tell the state of one index", func() error {
		for _, n := range nodes {
			state, err := n.State(ctx)
			if err != nil {
				return err
			}
			at := told[state.Index]
			if at == nil {
				at = map[string]string{}
				told[state.Index] = at
			}
			at[n.Name] = state.Hash
			for other, hash := range at {
				if hash != state.Hash {
					differ = fmt.Errorf("cluster: at index %d the state of %s is %s and "+
						"that of %s is %s",
						state.Index, n.Name, state.Hash, other, hash)
					return nil
				}
			}
			if len(at) == len(nodes) {
				return nil
			}
		}
		return errors.New("they are at different ones")
	})
	return errors.Join(err, differ)
}

// Leader returns the node that leads, by its own metrics. If two claim to lead, it is the one with
// the newer term.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	var leader *Node
	err := await(ctx, "there is a leader", func() error {
		var term float64
		for _, n := range c.With(ControlPlane) {
			if !n.Running() || n.frozen() {
				continue
			}
			metrics, err := n.Metrics(ctx)
			if err != nil {
				return err
			}
			if metrics["shoal_controlplane_leading"] == 1 &&
				metrics["shoal_controlplane_term"] > term {
				leader, term = n, metrics["shoal_controlplane_term"]
			}
		}
		if leader == nil {
			return errors.New("no node says that it leads")
		}
		return nil
	})
	return leader, err
}

// Settled waits until the cluster is in its intended state: every running control-plane node votes,
// and every shard has a fetcher.
func (c *Cluster) Settled(ctx context.Context) error {
	return await(ctx, "the cluster has settled", func() error {
		leader, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		metrics, err := leader.Metrics(ctx)
		if err != nil {
			return err
		}
		voters := len(slices.DeleteFunc(c.With(ControlPlane),
			func(n *Node) bool { return !n.Running() }))
		if got := int(metrics["shoal_controlplane_voters"]); got != voters {
			return fmt.Errorf("%d of %d control-plane nodes vote", got, voters)
		}
		if unowned, moving := metrics["shoal_controlplane_shards_unowned"],
			metrics["shoal_controlplane_shards_moving"]; unowned+moving > 0 {
			return fmt.Errorf("%v shards without an owner, %v moving", unowned, moving)
		}
		var held, owned float64
		for series, shards := range metrics {
			if strings.HasPrefix(series, "shoal_controlplane_shards_owned") {
				owned += shards
			}
		}
		for _, n := range c.With(Fetcher) {
			if !n.Running() || n.frozen() {
				continue
			}
			of, err := n.Metrics(ctx)
			if err != nil {
				return err
			}
			if of["shoal_fetcher_shards_held"] == 0 {
				return fmt.Errorf("%s holds no shard", n.Name)
			}
			held += of["shoal_fetcher_shards_held"]
		}
		if held != owned {
			return fmt.Errorf("%v of %v shards are held", held, owned)
		}
		return nil
	})
}

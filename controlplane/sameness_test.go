package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// later is a clock that is two days ahead.
type later struct{ clock.Clock }

func (l later) Now() time.Time { return time.Now().Add(48 * time.Hour) }

// All nodes compute the same state, whether they applied every command or began with a snapshot.
func TestStateIsTheSameOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 2)
	random := rand.New(rand.NewPCG(1, 2))
	var work sync.WaitGroup
	for n := range c.configs {
		seed := random.Uint64()
		work.Go(func() { randomCommands(t, c.at(n), rand.New(rand.NewPCG(seed, 1)), 40) })
	}
	work.Wait()
	latecomer := c.config("late", identity.Fetcher)
	latecomer.Log, latecomer.Store = c.configs[0].Log, c.store
	c.lead(func(n *node.Raft) error { return n.Snapshot().Error() })
	c.configs, c.running = append(c.configs, latecomer), append(c.running, nil)
	c.start(5)
	c.add(5, false)
	c.ready(5)
	c.sameHash()
}

// sameHash waits until all nodes are at the same index, and compares their states.
func (c *nodes) sameHash() {
	c.t.Helper()
	for ctx := patient(c.t); ; {
		indexes, hashes := map[uint64]bool{}, map[string]int{}
		for n := range c.configs {
			index, hash, err := c.at(n).StateHash()
			if err != nil {
				c.t.Fatal(err)
			}
			indexes[index], hashes[hash] = true, n
		}
		if len(indexes) == 1 {
			c.sayDifferences(slices.Collect(maps.Values(hashes)))
			return
		}
		if !clock.Pause(ctx, c.at(0).config.Clock, 5*time.Millisecond) {
			c.t.Fatalf("the nodes do not come to one index: %v", indexes)
		}
	}
}

// sayDifferences fails the test if there is more than one state. It lists the records of each node
// that the node before it lacks.
func (c *nodes) sayDifferences(at []int) {
	c.t.Helper()
	for i := 1; i < len(at); i++ {
		one, other := recordsOf(c.t, c.at(at[i-1])), recordsOf(c.t, c.at(at[i]))
		for record := range other {
			if one[record] {
				delete(one, record)
				delete(other, record)
			}
		}
		c.t.Errorf("different states at one index: node %d has\n%s\nand node %d has\n%s",
			at[i-1], strings.Join(slices.Sorted(maps.Keys(one)), "\n"),
			at[i], strings.Join(slices.Sorted(maps.Keys(other)), "\n"))
	}
}

// recordsOf returns the records of a node's snapshot in readable form, each after its table.
func recordsOf(t testing.TB, r *running) map[string]bool {
	t.Helper()
	goOn := r.node.Between()
	snapshot := r.node.FSM().Snapshot()
	goOn()
	var data bytes.Buffer
	if err := snapshot.Write(&data); err != nil {
		t.Fatal(err)
	}
	decoder, all := cbor.NewDecoder(&data), map[string]bool{}
	section := struct {
		Name  string `cbor:"1,keyasint"`
		Count int    `cbor:"2,keyasint"`
	}{"header", 1}
	for {
		for range section.Count {
			var record cbor.RawMessage
			err := decoder.Decode(&record)
			text, unreadable := cbor.Diagnose(record)
			if err = errors.Join(err, unreadable); err != nil {
				t.Fatal(err)
			}
			all[section.Name+" "+text] = true
		}
		switch err := decoder.Decode(&section); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
	}
}

func randomCommands(t *testing.T, r *running, random *rand.Rand, count int) {
	ctx := patient(t)
	for range count {
		ref := fmt.Sprint("c", random.IntN(3))
		var payload command.Payload
		switch random.IntN(6) {
		case 0:
			payload = client.OpenCustomer{Customer: ref, Entry: r.config.IDs.New()}
		case 1:
			payload = client.AdjustWallet{Customer: ref, Entry: r.config.IDs.New(),
				Amount: 1 + random.Int64N(100)}
		case 2:
			id := r.config.IDs.New()
			payload = client.MintKey{ID: id, Customer: ref, Prefix: id.String()[8:15],
				Scope: model.ScopeUser}
		case 3:
			payload = client.PutGroup{Create: true, ID: r.config.IDs.New(), Customer: ref,
				Name: fmt.Sprint(random.IntN(9))}
		case 4:
			payload = client.PutPrices{Rows: price.Standard()}
		case 5:
			payload = command.SettlePayload{Receipts: []model.Receipt{{Job: r.config.IDs.New()}}}
		}
		_, err := r.Propose(ctx, payload, nil)
		if code := fault.CodeOf(err); code == fault.Unavailable || code == fault.Internal ||
			code == fault.ScopeRejected {
			t.Errorf("%T: %v", payload, err)
			return
		}
	}
}

// A restore on a running cluster ends the leadership, and another begins with the restored state.
func TestLeadershipBeginsAnewAfterARestore(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	openCustomer(t, c.at(3), "before")
	var meta *raft.SnapshotMeta
	path := t.TempDir() + "/backup"
	c.lead(func(n *node.Raft) error {
		snapshot := n.Snapshot()
		if err := snapshot.Error(); err != nil {
			return err
		}
		m, source, err := snapshot.Open()
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		out, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }()
		meta = m
		_, err = out.ReadFrom(source)
		return err
	})
	openCustomer(t, c.at(3), "after")
	old := c.at(c.untilLed()).holder.Current()
	c.kill(3)
	c.start(3) // a boot that the backup does not know
	c.ready(3)
	c.lead(func(n *node.Raft) error {
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		return n.Restore(meta, in, time.Minute)
	})
	openCustomer(t, c.at(3), "anew")
	for n := range c.configs {
		view := fresh(t, c.at(n))
		if view.Customer("before") == nil || view.Customer("anew") == nil ||
			view.Customer("after") != nil {
			t.Fatalf("node %d does not have the restored state", n)
		}
	}
	if l := c.at(c.untilLed()).holder.Current(); l == old {
		t.Fatal("the leadership goes on over another state")
	}
	select {
	case <-old.Done():
	default:
		t.Fatal("the leadership over the state that was replaced is not over")
	}
	for ctx := patient(t); ; {
		if record := fresh(t, c.at(0)).Node("node-3"); record != nil &&
			record.Boot == c.at(3).config.Boot {
			break
		}
		if !clock.Pause(ctx, c.at(0).config.Clock, 5*time.Millisecond) {
			t.Fatal("a node that the backup does not know does not register again")
		}
	}
	beat := client.Heartbeat{Node: "node-3", Boot: c.at(3).config.Boot}
	if leases, err := c.at(3).Heartbeat(patient(t), beat); err != nil || leases.For == 0 {
		t.Fatalf("no lease after a restore: %+v, %v", leases, err)
	}
	c.sameHash()
}

// A stopping leader hands leadership over: callers elsewhere see a short delay and no error,
// whatever they ask.
func TestStoppingLeadersHandOver(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	done := make(chan struct{})
	var work sync.WaitGroup
	r := c.at(3)
	for what, ask := range map[string]func() error{
		"Do": func() error {
			return second(client.Do(patient(t), r,
				named(r.config.IDs.New().String()), nil))
		},
		"Fresh": func() error { return second(r.Fresh(patient(t))) },
		"Heartbeat": func() error {
			return second(r.Heartbeat(patient(t),
				client.Heartbeat{Node: r.config.Node, Boot: r.config.Boot}))
		},
		"Settle": func() error {
			return r.Settle(patient(t), []model.Receipt{{Job: ids.ID{1}}},
				[]model.Marker{{Leader: 1}})
		},
	} {
		work.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := ask(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	for range 3 {
		n := c.untilLed()
		r := c.at(n)
		c.mu.Lock()
		c.running[n] = nil
		c.mu.Unlock()
		r.stop()
		c.start(n)
		c.ready(n)
	}
	close(done)
	work.Wait()
	c.sameHash()
}

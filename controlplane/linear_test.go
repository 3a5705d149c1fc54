package controlplane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// The histories are of customers' wallets, whose entries are numbered and carry the balance, and of
// customers' sets of keys.
type (
	op struct {
		customer string
		kind     string // add, mint, revoke; read of wallet or keys
		keys     bool   // concerns keys
		amount   int64
		key      ids.ID
	}

	// outcome is the result of an op. An op with an unknown outcome may take effect at any time
	// after its start, or never.
	outcome struct {
		unknown bool
		balance int64
		entries uint64
		keys    string
		missing bool // the key to revoke did not exist
	}

	// content is the wallet and the keys of a customer.
	content struct {
		balance int64
		entries uint64
		keys    string
	}
)

// history is linearizable if some order of its ops explains all outcomes. Each op must take effect
// between its call and its return.
var history = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, one := range all {
			in := one.Input.(op)
			name := fmt.Sprint(in.customer, in.keys)
			parts[name] = append(parts[name], one)
		}
		var list [][]porcupine.Operation
		for _, part := range parts {
			list = append(list, part)
		}
		return list
	},
	Init: func() any { return content{entries: 1} }, // the free grant
	Step: func(before, input, output any) (bool, any) {
		now, in, out := before.(content), input.(op), output.(outcome)
		next := now
		switch in.kind {
		case "read":
			if in.keys {
				return out.keys == now.keys, now
			}
			return out.balance == now.balance && out.entries == now.entries, now
		case "add":
			next.balance += in.amount
			next.entries++
			return out.unknown || out.balance == next.balance && out.entries == next.entries, next
		case "mint":
			next.keys = withKey(now.keys, in.key)
			return true, next
		default: // revoke
			next.keys = withoutKey(now.keys, in.key)
			return out.unknown || out.missing == (next.keys == now.keys), next
		}
	},
	DescribeOperation: func(input,
		output any) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}

// A set of keys is encoded as its ids, sorted.
func withKey(keys string, id ids.ID) string {
	list := append(strings.Fields(keys), id.String())
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

func withoutKey(keys string, id ids.ID) string {
	list := slices.DeleteFunc(strings.Fields(keys), func(k string) bool { return k == id.String() })
	return strings.Join(list, " ")
}

// historian is one client of one node.
type historian struct {
	t         *testing.T
	c         *nodes
	node      int
	random    *rand.Rand
	begun     time.Time
	customers []string

	mu     *sync.Mutex
	minted *[]ids.ID
	all    *[]porcupine.Operation
}

// act does one op if the node runs. It may fail only if the node is stopped meanwhile.
func (h *historian) act(in op) {
	r := h.c.at(h.node)
	if r == nil {
		h.c.pauseAny(h.t)
		return
	}
	from := time.Since(h.begun)
	out, err := h.do(r, in)
	until := time.Since(h.begun).Nanoseconds()
	if err != nil {
		if fault.CodeOf(err) != fault.Unavailable || r.node.Life().Err() == nil {
			h.t.Errorf("node %d: %+v: %v", h.node, in, err)
		}
		if in.kind == "read" {
			return
		}
		out, until = outcome{unknown: true}, math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.all = append(*h.all, porcupine.Operation{ClientId: h.node, Input: in,
		Call: from.Nanoseconds(), Output: out, Return: until})
}

func (h *historian) do(r *running, in op) (outcome, error) {
	ctx := patient(h.t)
	switch in.kind {
	case "add":
		entry, err := client.Do(ctx, r,
			client.AdjustWallet{Customer: in.customer, Entry: r.config.IDs.New(),
				Amount: in.amount}, nil)
		return outcome{balance: entry.BalanceAfter, entries: entry.Sequence}, err
	case "mint":
		_, err := client.Do(ctx, r,
			client.MintKey{ID: in.key, Customer: in.customer, Prefix: in.key.String()[17:],
				Scope: model.ScopeUser}, nil)
		return outcome{}, err
	case "revoke":
		_, err := client.Do(ctx, r, client.RevokeKey{ID: in.key, Customer: in.customer}, nil)
		if fault.CodeOf(err) == fault.KeyNotFound {
			return outcome{missing: true}, nil
		}
		return outcome{}, err
	}
	view, err := r.Fresh(ctx)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{}
	for _, key := range view.Keys(in.customer) {
		out.keys = withKey(out.keys, key.ID)
	}
	wallet := view.Wallet(in.customer)
	out.balance, out.entries = wallet.Balance(), wallet.Sequence
	return out, nil
}

// next returns a random op.
func (h *historian) next() op {
	in := op{customer: h.customers[h.random.IntN(len(h.customers))], keys: h.random.IntN(2) == 0,
		kind: "read"}
	switch turn := h.random.IntN(5); {
	case turn < 2:
	case !in.keys:
		in.kind, in.amount = "add", 1+h.random.Int64N(9)
	default:
		h.mu.Lock()
		defer h.mu.Unlock()
		if turn == 2 && len(*h.minted) > 0 {
			in.kind, in.key = "revoke", (*h.minted)[h.random.IntN(len(*h.minted))]
			in.customer = h.customers[int(in.key[11])%len(h.customers)]
			return in
		}
		in.kind = "mint"
		in.key = h.c.configs[0].IDs.New()
		in.customer = h.customers[int(in.key[11])%len(h.customers)]
		*h.minted = append(*h.minted, in.key)
	}
	return in
}

// pauseAny waits for a moment.
func (c *nodes) pauseAny(t testing.TB) {
	select {
	case <-t.Context().Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// Concurrent clients call every node, voter or not, while leaders are killed, restarted and cut
// off. No acknowledged write is lost, no fresh read is stale, and a change of leader is a delay and
// not an error.
func TestHistoriesAreLinearizableWhileLeadersGo(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 2)
	customers := []string{"ann", "bob"}
	for _, ref := range customers {
		openCustomer(t, c.at(4), ref)
	}
	var mu sync.Mutex
	var minted []ids.ID
	var all []porcupine.Operation
	begun, done, goal := time.Now(), make(chan struct{}), 0
	historians := make([]*historian, len(c.configs))
	var work sync.WaitGroup
	for n := range c.configs {
		h := &historian{t: t, c: c, node: n, random: rand.New(rand.NewPCG(uint64(n), 7)),
			begun: begun, customers: customers,
			mu: &mu, minted: &minted, all: &all}
		historians[n] = h
		work.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					h.act(h.next())
					c.pauseAny(t) // bounds the search for an order
				}
			}
		})
	}
	grown := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(all) >= goal
	}
	for fault := range 6 {
		for goal += 100; !grown(); {
			c.pauseAny(t)
		}
		n := c.leader()
		for ; n < 0; n = c.leader() {
			c.pauseAny(t)
		}
		if fault%2 == 0 {
			c.kill(n)
			c.next(n)
			c.start(n)
			c.ready(n)
		} else {
			c.net.cut(c.configs[n].Node)
			c.next(n)
			c.net.mend(c.configs[n].Node)
		}
	}
	close(done)
	work.Wait()
	for _, h := range historians { // the final contents are part of the history
		for _, ref := range customers {
			h.act(op{customer: ref, kind: "read"})
			h.act(op{customer: ref, kind: "read", keys: true})
		}
	}
	result, info := porcupine.CheckOperationsVerbose(history, all, time.Minute)
	t.Logf("%d operations in %s", len(all), time.Since(begun).Round(time.Millisecond))
	if result != porcupine.Ok {
		path := t.TempDir() + "/history.html"
		t.Fatalf("the history is %s (%v)", result, porcupine.VisualizePath(history, info, path))
	}
	c.sameHash()
}

func TestTheCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	add := func(from, until int64, out outcome) porcupine.Operation {
		return porcupine.Operation{Input: op{customer: "a", kind: "add", amount: 2}, Call: from,
			Output: out, Return: until}
	}
	read := func(from, until, balance int64) porcupine.Operation {
		return porcupine.Operation{Input: op{customer: "a", kind: "read"}, Call: from,
			Output: outcome{balance: balance, entries: uint64(1 + balance/2)}, Return: until}
	}
	first, second := outcome{balance: 2, entries: 2}, outcome{balance: 4, entries: 3}
	for name, c := range map[string]struct {
		want bool
		all  []porcupine.Operation
	}{
		"in order": {true,
			[]porcupine.Operation{add(1, 2, first), read(3, 4, 2), add(5, 6, second),
				read(7, 8, 4)}},
		"stale": {false,
			[]porcupine.Operation{add(1, 2, first), read(3, 4, 0)}},
		"lost": {false,
			[]porcupine.Operation{add(1, 2, first), add(3, 4, first)}},
		"unknown and there": {true,
			[]porcupine.Operation{add(1, 99, outcome{unknown: true}), read(3, 4, 2)}},
		"unknown and not there": {true,
			[]porcupine.Operation{add(1, 99, outcome{unknown: true}), read(3, 4, 0)}},
		"unknown, there, not there": {false,
			[]porcupine.Operation{add(1, 99, outcome{unknown: true}), read(3, 4, 2),
				read(5, 6, 0)}},
	} {
		if got := porcupine.CheckOperations(history, c.all); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}

// next waits until a node other than n leads and has applied a command.
func (c *nodes) next(n int) {
	c.t.Helper()
	ctx := patient(c.t)
	for {
		for m := range c.configs {
			if r := c.at(m); m != n && r != nil && r.holder.Current() != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			c.t.Fatal("nobody else leads")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// BenchmarkFailover measures from a leader's death until another node has applied a command.
func BenchmarkFailover(b *testing.B) {
	c := newNodes(b, 3, 1)
	var took []time.Duration
	for b.Loop() {
		n := c.leader()
		for ; n < 0; n = c.leader() {
			c.pauseAny(b)
		}
		c.net.cut(c.configs[n].Node) // abruptly, like a death
		from := time.Now()
		if _, err := client.Do(patient(b), c.at(3), client.TouchKeys{}, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(from))
		c.kill(n)
		c.net.mend(c.configs[n].Node)
		c.start(n)
		c.ready(n)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}

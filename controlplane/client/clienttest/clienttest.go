// Package clienttest is a control plane for the tests of other roles: the real state machine in
// process memory, without Raft, leader or dispatcher. Launched runs stay as they are until a test
// moves them with commands.
package clienttest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
)

// FreeGrant is the number of free requests of a new wallet.
const FreeGrant = 5

// Client implements client.Client. It is safe for concurrent use.
type Client struct {
	clock clock.Clock

	mu     sync.Mutex
	fsm    *fsm.FSM
	ids    ids.Sequence // of commands
	index  uint64
	frozen *client.View
	down   error
	lost   int    // the answer to the command at this count from now is lost; 0: none
	newest []byte // command
	log    log
}

// New makes a cluster of 4 shards with prices of plain and rendered pages and of all endpoints.
func New(t testing.TB, c clock.Clock) *Client {
	t.Helper()
	fake := &Client{clock: c, fsm: fsm.New()}
	t.Cleanup(func() { fake.checkAgain(t) })
	fake.Must(t, command.CreateClusterPayload{Version: command.Newest, ID: ids.ID{1}, Shards: 4,
		FreeGrant: FreeGrant,
		Prices: slices.DeleteFunc(price.Standard(), func(r price.Row) bool {
			return r.RowKey == model.Super.PriceRow() || r.RowKey == model.RenderSuper.PriceRow()
		})})
	return fake
}

// Freeze makes View lag: it keeps returning an earlier state, while Fresh moves on. nil ends it.
func (c *Client) Freeze(at *client.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = at
}

// Fail makes every call answer err from now on; nil ends it.
func (c *Client) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// Lose drops the answer of the n-th command from now: it is applied, and its caller gets the error
// Down.
func (c *Client) Lose(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = n
}

// Tick applies what has come due.
func (c *Client) Tick(t testing.TB) {
	t.Helper()
	c.Must(t, command.TickPayload{})
}

// Propose implements client.Client.
func (c *Client) Propose(ctx context.Context, payload command.Payload, call *client.Call) (any,
	error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	var under *command.Call
	if call != nil {
		under = &command.Call{Customer: call.Customer, Operation: call.Operation, Key: call.Key,
			Request: call.Request, Ticket: call.Ticket, Body: call.Body,
			AnswerOnly: call.AnswerOnly}
	}
	id := c.ids.New()
	data, err := c.fsm.EncodeBy(client.ActorOf(ctx), id, c.clock.Now().UnixMilli(), payload, under)
	if err != nil {
		return nil, err
	}
	c.index++
	c.newest = data
	c.log.add(c.index, data)
	result := c.fsm.Apply(c.index, data)
	if c.lost > 0 {
		if c.lost--; c.lost == 0 {
			return nil, Down()
		}
	}
	if call != nil {
		call.Replayed, call.FirstBody = result.Replayed, result.Body
		if _, claims := payload.(command.ClaimCallPayload); claims && result.Err == nil &&
			!result.Replayed {
			call.Ticket = id
		}
	}
	return result.Value, result.Err
}

// Must applies a command, and fails the test if it has a fault.
func (c *Client) Must(t testing.TB, payload command.Payload) any {
	t.Helper()
	result, err := c.Propose(t.Context(), payload, nil)
	if err != nil {
		t.Fatalf("command %T: %v", payload, err)
	}
	return result
}

// View implements client.Client.
func (c *Client) View() *client.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		return c.frozen
	}
	return c.fsm.Store().View()
}

// Fresh implements client.Client.
func (c *Client) Fresh(context.Context) (*client.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	return c.fsm.Store().View(), nil
}

// Follow implements client.Client.
func (c *Client) Follow(customer string, behind uint64) *client.Following {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fsm.Store().Follow(customer, behind)
}

// Replace replaces the state by a snapshot of itself, as on a node that lags far behind.
func (c *Client) Replace(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var snapshot bytes.Buffer
	before := c.fsm.Store()
	err := c.fsm.Snapshot().Write(&snapshot)
	if err == nil {
		err = c.fsm.Restore(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	before.Abandon()
}

// Short says whose disks are short of room for anything new; "": nobody's.
func (c *Client) Short(t testing.TB, whose string) {
	t.Helper()
	c.Must(t, command.NoteSpacePayload{Short: whose})
}

var errNotHere = errors.New("clienttest: not part of this control plane")

// Dispatch dispatches links of a run, as far as the money goes.
func (c *Client) Dispatch(t testing.TB, job ids.ID, seqs ...uint32) {
	t.Helper()
	c.Must(t, command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job, Seqs: seqs}}})
}

// DispatchAt dispatches a link whose domain's price row is at a place of the run's prices; 0: none.
// It returns the tiers that the money covers, empty if it covers no page, and the key of that row.
func (c *Client) DispatchAt(t testing.TB, job ids.ID, seq uint32, place byte) (model.TierSet,
	string) {
	t.Helper()
	window := c.Must(t, command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job,
		Seqs: []uint32{seq}, Priced: []byte{place}}}}).(command.Window)
	if len(window.Grants) == 0 {
		return 0, ""
	}
	return window.Grants[0].Tiers, window.Grants[0].Domain
}

// CloseRun closes a run with nothing out that has ended or whose links are all settled.
func (c *Client) CloseRun(t testing.TB, job ids.ID) {
	t.Helper()
	c.Must(t, command.CloseRunPayload{Job: job})
}

// HoldRun closes a run as CloseRun does, and holds it back if its group wants that.
func (c *Client) HoldRun(t testing.TB, job ids.ID, why string) {
	t.Helper()
	c.Must(t, command.CloseRunPayload{Job: job, Odd: why})
}

// Archive moves everything sealed to an archive. The newest keep runs and entries of each customer
// also stay in the state.
func (c *Client) Archive(t testing.TB, to rowstore.Archive, keep int) {
	t.Helper()
	batch, err := archive.Next(c.View(), rowstore.MaxPast)
	if err == nil {
		err = to.PutPast(t.Context(), batch.Runs, batch.Entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Must(t, command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
		Upto: batch.Upto, Keep: uint32(keep)})
	told, err := archive.NextAudit(c.View(), rowstore.MaxPast)
	if err == nil {
		err = to.PutAudit(t.Context(), told.Entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := len(told.Entries); n > 0 {
		c.Must(t, command.DropAuditPayload{Generation: told.Generation,
			From: told.Entries[0].Number, Upto: told.Entries[n-1].Number})
	}
}

// Settle implements client.Client; there is no leader for markers.
func (c *Client) Settle(ctx context.Context, receipts []model.Receipt, _ []model.Marker) error {
	_, err := c.Propose(ctx, command.SettlePayload{Receipts: receipts}, nil)
	return err
}

// Heartbeat implements client.Client; it is not supported.
func (c *Client) Heartbeat(context.Context, client.Heartbeat) (client.Leases, error) {
	return client.Leases{}, errNotHere
}

// SafeTime implements client.Client; it trusts the clock.
func (c *Client) SafeTime(context.Context) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Now(), c.down
}

// Status implements client.Client.
func (c *Client) Status(context.Context) (client.Status, error) {
	return client.Status{Node: "test", Leader: "test"}, nil
}

// Nodes implements client.Client: it returns the registered nodes as if all were alive.
func (c *Client) Nodes(context.Context) ([]client.NodeStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	view := c.fsm.Store().View()
	var list []client.NodeStatus
	for _, node := range view.Nodes() {
		status := client.NodeStatus{Name: node.Name, Roles: node.Roles, Version: node.Version,
			Capacity: node.Capacity,
			Tiers:    node.Tiers, Boot: node.Boot, Draining: node.Draining, State: client.NodeAlive}
		if node.Draining {
			status.State = client.NodeDrained
		}
		list = append(list, status)
	}
	return list, nil
}

// Down returns the error of a real client that finds no leader.
func Down() error { return fault.New(fault.Unavailable, "no leader") }

package clienttest

import (
	"bytes"
	"testing"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// The types that a Spoil changes.
type (
	Tx    = state.Tx
	Books = state.Books
)

// Spoil changes the state directly, as a defect would.
func (c *Client) Spoil(t testing.TB, change func(tx *Tx)) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	c.log.partial = true
	err := c.fsm.Store().Update(c.index, c.clock.Now().UnixMilli(), func(tx *Tx) error {
		change(tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Repeat applies the newest command again, as a proposer does that got no answer because the leader
// ended.
func (c *Client) Repeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest != nil {
		c.index++
		c.log.add(c.index, c.newest)
		c.fsm.Apply(c.index, c.newest)
	}
}

// Backup returns a backup of the present state.
func (c *Client) Backup(t testing.TB) []byte {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var backup bytes.Buffer
	if err := c.fsm.Snapshot().Write(&backup); err != nil {
		t.Fatal(err)
	}
	return backup.Bytes()
}

// Restore restores a backup over the present state, as an operator does. It ignores stored pages.
func (c *Client) Restore(t testing.TB, backup []byte, generation ids.ID) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = nil
	before := c.fsm.Store()
	next, err := state.Restore(bytes.NewReader(backup))
	if err == nil {
		_, err = next.Succeed(before, state.Restoration{Generation: generation})
	}
	var snapshot bytes.Buffer
	if err == nil {
		err = next.Snapshot().Write(&snapshot)
	}
	c.log = log{base: bytes.Clone(snapshot.Bytes())}
	if err == nil {
		err = c.fsm.Restore(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	before.Abandon()
}

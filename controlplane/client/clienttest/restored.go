package clienttest

import (
	"bytes"
	"testing"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// What Spoil works on.
type (
	Tx    = state.Tx
	Books = state.Books
)

// Spoil changes the state by hand, as a defect would.
func (c *Client) Spoil(t testing.TB, change func(tx *Tx)) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	err := c.fsm.Store().Update(c.index, c.clock.Now().UnixMilli(), func(tx *Tx) error {
		change(tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Repeat applies the newest command once more, as its proposer does that has heard of no answer: a
// leader ended behind it.
func (c *Client) Repeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest != nil {
		c.index++
		c.fsm.Apply(c.index, c.newest)
	}
}

// Backup is the state as it is.
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

// Restore has a backup's state follow the one that there is, as an operator does. Of pages that are
// stored it knows nothing.
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
	if err == nil {
		err = c.fsm.Restore(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	before.Abandon()
}

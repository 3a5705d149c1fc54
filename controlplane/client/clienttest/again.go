package clienttest

import (
	"bytes"
	"testing"

	"shoal.dev/shoal/controlplane/internal/fsm"
)

// Bounds of the log that is applied again.
const (
	maxAgain      = 2_000   // commands
	maxAgainBytes = 8 << 20 // of commands
	restarts      = 7       // of the second machine
)

// log is a test's commands, so that they can be applied again.
type log struct {
	base     []byte // the snapshot that they follow; nil: an empty state
	commands []logged
	size     int
	partial  bool // too long, or the state was changed by something that is no command
}

type logged struct {
	index uint64
	data  []byte
}

func (l *log) add(index uint64, data []byte) {
	if l.size += len(data); len(l.commands) == maxAgain || l.size > maxAgainBytes {
		l.partial, l.commands = true, nil
	}
	if !l.partial {
		l.commands = append(l.commands, logged{index, data})
	}
}

// checkAgain expects that the same log gives the same state, byte for byte: on another machine, and
// on one that continues from snapshots. So every test with this client also tests the commands that
// it needs, in an order that users' calls give them.
func (c *Client) checkAgain(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log.partial {
		return
	}
	whole, split := c.begin(t), c.begin(t)
	every := len(c.log.commands)/(restarts+1) + 1
	for n, each := range c.log.commands {
		whole.Apply(each.index, each.data)
		split.Apply(each.index, each.data)
		if n%every == every-1 {
			split = restart(t, split)
		}
	}
	want := written(t, c.fsm)
	if !bytes.Equal(written(t, whole), want) {
		t.Error("the same commands give another state on another machine")
	}
	if !bytes.Equal(written(t, split), want) {
		t.Error("the same commands give another state after restarts from snapshots")
	}
}

// begin returns a machine as it was before the log's first command.
func (c *Client) begin(t testing.TB) *fsm.FSM {
	t.Helper()
	m := fsm.New()
	if c.log.base != nil {
		if err := m.Restore(bytes.NewReader(c.log.base)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func restart(t testing.TB, m *fsm.FSM) *fsm.FSM {
	t.Helper()
	again := fsm.New()
	if err := again.Restore(bytes.NewReader(written(t, m))); err != nil {
		t.Fatal(err)
	}
	return again
}

func written(t testing.TB, m *fsm.FSM) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Snapshot().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

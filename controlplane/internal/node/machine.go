package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// machine is the state machine that Raft drives.
type machine struct {
	fsm     *fsm.FSM
	point   func(string)
	metrics *metrics

	// held while a command is applied; holding it pauses between two commands
	between  sync.Mutex
	restored func() // called when a snapshot has replaced the state

	mu      sync.Mutex
	applied uint64        // everything up to this index is applied here
	moved   chan struct{} // closed when applied moves; nil while nobody waits
	// expected are the commands whose results are awaited here.
	expected map[ids.ID]chan fsm.Result
}

func newMachine(point func(string), metrics *metrics) *machine {
	return &machine{fsm: fsm.New(), point: point, metrics: metrics, restored: func() {},
		expected: map[ids.ID]chan fsm.Result{}}
}

var (
	_ raft.FSM                = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

// Apply implements raft.FSM; the answer is an fsm.Result.
func (m *machine) Apply(entry *raft.Log) any {
	m.between.Lock()
	m.point("raft.before_apply")
	began := m.metrics.now()
	result := m.fsm.Apply(entry.Index, entry.Data)
	m.metrics.applied(result, began)
	m.point("raft.after_apply")
	m.between.Unlock()
	m.deliver(result)
	m.passed(entry.Index)
	return result
}

// expect returns a channel for the result of a command when this node next applies it, until forget
// is called.
func (m *machine) expect(id ids.ID) (result <-chan fsm.Result, forget func()) {
	results := make(chan fsm.Result, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected[id] = results
	return results, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.expected[id] == results {
			delete(m.expected, id)
		}
	}
}

func (m *machine) deliver(result fsm.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if results := m.expected[result.ID]; results != nil {
		select {
		case results <- result:
		default: // a repeated command: its first result stands
		}
	}
}

// StoreConfiguration implements raft.ConfigurationStore. Such an entry changes no state, but takes
// an index of the log.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) { m.passed(index) }

// passed records that everything up to index is applied.
func (m *machine) passed(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index <= m.applied {
		return
	}
	m.applied = index
	if m.moved != nil {
		close(m.moved)
		m.moved = nil
	}
}

// waitFor waits until everything up to index is applied, or ctx or the node's life ends.
func (m *machine) waitFor(ctx, life context.Context, index uint64) error {
	for {
		m.mu.Lock()
		if m.applied >= index {
			m.mu.Unlock()
			return nil
		}
		if m.moved == nil {
			m.moved = make(chan struct{})
		}
		moved := m.moved
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-life.Done():
			return ErrStopping
		case <-moved:
		}
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.point("raft.before_snapshot")
	return &snapshot{state: m.fsm.Snapshot(), point: m.point, metrics: m.metrics}, nil
}

// whenRestored sets the function that is called whenever a snapshot replaces the state.
func (m *machine) whenRestored(restored func()) {
	m.between.Lock()
	defer m.between.Unlock()
	m.restored = restored
}

// Restore implements raft.FSM. A leader whose state is replaced starts again: its memory is no
// longer valid.
func (m *machine) Restore(r io.ReadCloser) error {
	defer func() { _ = r.Close() }() // read only: nothing is lost
	m.between.Lock()
	defer m.between.Unlock()
	m.point("raft.before_replace") // the snapshot is on disk
	old := m.fsm.Store()
	if err := m.fsm.Restore(r); err != nil {
		return err
	}
	m.fsm.Observe(nil)
	old.Abandon()
	m.restored()
	index, _ := m.fsm.Store().Progress()
	m.passed(index)
	return nil
}

// hash returns a hash of the state's snapshot, which is equal for equal states, and the index of
// its newest command.
func (m *machine) hash() (index uint64, hash string, err error) {
	m.between.Lock()
	now := m.fsm.Snapshot()
	index, _ = m.fsm.Store().Progress()
	m.between.Unlock()
	digest := sha256.New()
	if err := now.Write(digest); err != nil {
		return 0, "", err
	}
	return index, hex.EncodeToString(digest.Sum(nil)), nil
}

type snapshot struct {
	state   *state.Snapshot
	point   func(string)
	metrics *metrics
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	began, counted := s.metrics.now(), countedWriter{to: sink}
	if err := s.state.Write(&pacedWriter{to: &counted, clock: s.metrics.clock}); err != nil {
		_ = sink.Cancel() // the snapshot failed already
		return err
	}
	if err := sink.Close(); err != nil {
		return err
	}
	s.metrics.snapshot(counted.bytes, began)
	s.point("raft.after_snapshot")
	return nil
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}

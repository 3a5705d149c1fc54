package controlplane

import (
	"context"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
)

// machine is the state machine as Raft drives it.
type machine struct {
	fsm     *fsm.FSM
	point   func(string)
	metrics *metrics

	between sync.Mutex // held while a command is applied: whoever has it stands between two commands

	mu      sync.Mutex
	applied uint64        // newest index of which everything is applied here
	moved   chan struct{} // closed when applied moves; nil while nobody waits
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
	m.passed(entry.Index)
	return result
}

// StoreConfiguration implements raft.ConfigurationStore: such entries change no state but take a place in the log.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) { m.passed(index) }

// passed notes that everything up to index is applied.
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

// waitFor waits until everything up to index is applied.
func (m *machine) waitFor(ctx context.Context, index uint64) error {
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
		case <-moved:
		}
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.point("raft.before_snapshot")
	return &snapshot{state: m.fsm.Snapshot(), point: m.point, metrics: m.metrics}, nil
}

// Restore implements raft.FSM.
func (m *machine) Restore(r io.ReadCloser) error {
	defer func() { _ = r.Close() }() // read only: nothing is lost
	m.between.Lock()
	defer m.between.Unlock()
	if err := m.fsm.Restore(r); err != nil {
		return err
	}
	index, _ := m.fsm.Store().Progress()
	m.passed(index)
	return nil
}

type snapshot struct {
	state   *state.Snapshot
	point   func(string)
	metrics *metrics
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	began, counted := s.metrics.now(), countedWriter{to: sink}
	if err := s.state.Write(&counted); err != nil {
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

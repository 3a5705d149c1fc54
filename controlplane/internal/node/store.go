package node

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"shoal.dev/shoal/pkg/clock"
)

// writesRemembered is how long a slow write to the store counts, at least; it counts at most twice
// as long.
const writesRemembered = time.Minute

// deletedAtOnce is how many old entries one write removes at most.
const deletedAtOnce = 128

// Raft's names of its last vote's parts.
const (
	voteTerm      = "LastVoteTerm"
	voteCandidate = "LastVoteCand"
)

// store is Raft's log, term and vote on disk. Every write is synced before it returns, and is
// timed.
type store struct {
	*raftboltdb.BoltStore
	before func() // called before every write
	clock  clock.Clock
	took   func(seconds float64)
	voting uint64 // the term of a vote whose candidate follows

	mu                sync.Mutex
	current, previous time.Duration // the slowest write since began, and of the period before
	began             time.Time
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(entries []*raft.Log) error {
	return s.write(func() error { return s.BoltStore.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore. Old entries go in parts, so that commands can write in
// between. The end of the log, which another leader's replaces, goes at once. Remaining entries
// behind a gap would be taken for the newest.
func (s *store) DeleteRange(first, last uint64) error {
	newest, err := s.LastIndex()
	if err != nil {
		return err
	}
	for last < newest && last-first >= deletedAtOnce {
		part := first
		if err := s.write(func() error {
			return s.BoltStore.DeleteRange(part, part+deletedAtOnce-1)
		}); err != nil {
			return err
		}
		first += deletedAtOnce
	}
	return s.write(func() error { return s.BoltStore.DeleteRange(first, last) })
}

// Set implements raft.StableStore. It writes a vote's candidate before its term, and Raft gives it
// the term first. A process killed in between has not voted in that term. In Raft's order it would
// have voted for the candidate of its vote before, and confirm that whatever is in that one's log.
func (s *store) Set(key, value []byte) error {
	err := s.write(func() error { return s.BoltStore.Set(key, value) })
	if err != nil || string(key) != voteCandidate {
		return err
	}
	return s.write(func() error { return s.BoltStore.SetUint64([]byte(voteTerm), s.voting) })
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(key []byte, value uint64) error {
	if string(key) == voteTerm {
		s.voting = value
		return nil
	}
	return s.write(func() error { return s.BoltStore.SetUint64(key, value) })
}

func (s *store) write(do func() error) error {
	began := s.clock.Now()
	s.before()
	err := do()
	now := s.clock.Now()
	s.took(now.Sub(began).Seconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.current = max(s.current, now.Sub(began))
	return err
}

// turn forgets the times of old writes.
func (s *store) turn(now time.Time) {
	switch age := now.Sub(s.began); {
	case age >= 2*writesRemembered:
		s.current, s.previous, s.began = 0, 0, now
	case age >= writesRemembered:
		s.current, s.previous, s.began = 0, s.current, now
	}
}

// slowest returns the time of the slowest write of the last one to two minutes.
func (s *store) slowest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(s.clock.Now())
	return max(s.current, s.previous)
}

package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"shoal.dev/shoal/pkg/telemetry"
)

// StateHash is the SHA-256 of this node's copy of the state, written as a snapshot: nodes that have applied the same
// commands have the same. It costs about as much as a snapshot; one is made at a time.
func (s *Server) StateHash() (telemetry.StateHash, error) {
	s.hashing.Lock()
	defer s.hashing.Unlock()
	s.machine.between.Lock()
	index, _ := s.machine.fsm.Store().Progress()
	state := s.machine.fsm.Snapshot()
	s.machine.between.Unlock()
	hash := sha256.New()
	if err := state.Write(hash); err != nil {
		return telemetry.StateHash{}, fmt.Errorf("controlplane: hash the state: %w", err)
	}
	return telemetry.StateHash{Index: index, Hash: hex.EncodeToString(hash.Sum(nil))}, nil
}

package node

import (
	"errors"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/telemetry"
)

// errDiverged is why a node is not ready whose copy of the state is another than that of most
// voters.
var errDiverged = errors.New("this node's copy of the state is not that of the other voters: " +
	"start it anew without its data")

// Diverged is nil while nobody has found this node's copy of the state to differ. It stays until
// the process ends.
func (n *Node) Diverged() error {
	if n.diverged.Load() {
		return errDiverged
	}
	return nil
}

// NoteDiverged compares what stands at an index with this node's own digest, if it has one, and
// says so when they differ.
func (n *Node) NoteDiverged(stands state.Digest) {
	for _, own := range n.Store().Digests() {
		if own.Index == stands.Index && own.Sum != stands.Sum && !n.diverged.Swap(true) {
			n.config.Logger.Error(errDiverged.Error(), "index", own.Index, "own", own.Sum, "stands",
				stands.Sum)
		}
	}
}

// measureDivergence shows whether this node's copy of the state was found to differ.
func (n *Node) measureDivergence(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Node, bool) { return n, true }).
		Gauge("shoal_controlplane_state_diverged",
			"1 on a node whose copy of the state is not that of the other voters.",
			func(n *Node) float64 { return telemetry.Truth(n.Diverged() != nil) }).
		Declare(to)
}

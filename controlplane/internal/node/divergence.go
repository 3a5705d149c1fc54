package node

import (
	"errors"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/telemetry"
)

// errDiverged is why a node is not ready: its copy of the state differs from that of most voters.
var errDiverged = errors.New("this node's copy of the state is not that of the other voters: " +
	"start it anew without its data")

// Diverged returns nil until somebody finds that this node's copy of the state differs. It then
// stays set until the process ends.
func (n *Node) Diverged() error {
	if n.diverged.Load() {
		return errDiverged
	}
	return nil
}

// NoteDiverged compares the digest that stands at an index with this node's own, if it has one. It
// logs the first difference.
func (n *Node) NoteDiverged(stands state.Digest) {
	for _, own := range n.Store().Digests() {
		if own.Index == stands.Index && own.Sum != stands.Sum && !n.diverged.Swap(true) {
			n.config.Logger.Error(errDiverged.Error(), "index", own.Index, "own", own.Sum, "stands",
				stands.Sum)
		}
	}
}

// measureDivergence exports whether this node's copy of the state was found to differ.
func (n *Node) measureDivergence(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Node, bool) { return n, true }).
		Gauge("shoal_controlplane_state_diverged",
			"1 on a node whose copy of the state differs from that of the other voters.",
			func(n *Node) float64 { return telemetry.Truth(n.Diverged() != nil) }).
		Declare(to)
}

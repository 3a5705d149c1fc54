//go:build linux

package cluster

import (
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
)

// TestServicesAreOfOneCluster: a cluster founded on the log and the database of another one ends
// before it works. If told to take them over, it works, and the other one's nodes end.
func TestServicesAreOfOneCluster(t *testing.T) {
	t.Parallel()
	network, prefix := newNetwork(t), newPrefix()
	all := []string{cluster.ControlPlane, cluster.Fetcher, cluster.Ingest, cluster.Billing,
		cluster.APIServer}
	one := func() *cluster.Cluster {
		return newClusterOn(t, network, binary(t), prefix,
			[]cluster.Spec{{Name: "one", Roles: all}}, nil)
	}
	ctx := suite.Within(t, settleTime)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(n *cluster.Node) {
		t.Helper()
		must(n.Start())
		select {
		case <-n.Ended():
		case <-ctx.Done():
			t.Fatal("a node works on another cluster's services")
		}
		if said := n.Said(); !strings.Contains(said, "is that of cluster") {
			t.Errorf("it does not say why:\n%s", said)
		}
	}
	first := one()
	start(t, first)
	own, stranger := first.Nodes()[0], one().Nodes()[0]
	refused(stranger)
	must(own.Restart(stopLimit))
	must(own.Ready(ctx))
	must(own.Stop(stopLimit))
	stranger.Args = []string{"--rebind-services"}
	must(stranger.Start())
	must(stranger.Ready(ctx))
	refused(own)
}

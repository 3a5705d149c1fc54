package controlplane

import (
	"context"
	"errors"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Pages that a node stored elsewhere would be charged and never seen.
func TestNodeOfOtherServicesEnds(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	with := func(log, rows string, rebind bool) Config {
		other := config
		other.Boot, other.Services = config.IDs.New(),
			Services{Log: log, Rows: rows, Rebind: rebind}
		return other
	}
	serve(t, with("", "rows a", false)).stop() // the first node sets the names
	serve(t, with("kafka a", "rows a", false)).stop()
	for _, c := range []Config{with("kafka b", "rows a", false), with("kafka a", "rows b", false)} {
		server, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Run(patient(t)); fault.CodeOf(err) != fault.OtherServices {
			t.Errorf("a node on %+v: %v", c.Services, err)
		}
		select {
		case <-server.Ready():
			t.Error("it was ready")
		default:
		}
	}
	serve(t, with("kafka a", "rows a", false)).stop()
	serve(t, with("kafka b", "rows b", true)).stop()
	view := fresh(t, serve(t, with("kafka b", "rows b", false)))
	if c := view.Cluster(); c.Log != "kafka b" || c.Rows != "rows b" {
		t.Errorf("the cluster's services are %q and %q", c.Log, c.Rows)
	}
}

// Two clusters on one log or row store would take each other's pages.
func TestServicesOfAnotherCluster(t *testing.T) {
	t.Parallel()
	var mark ids.ID
	config := testConfig(t, t.TempDir())
	config.Services = Services{Log: "kafka a", Rows: "rows a",
		Claim: func(_ context.Context, cluster ids.ID, take bool) error {
			if mark.IsZero() || take {
				mark = cluster
			}
			if mark != cluster {
				return fault.New(fault.OtherServices, "they are of cluster %s", mark)
			}
			return nil
		}}
	first := serve(t, config)
	own := first.View().Cluster().ID
	first.stop()
	if mark != own {
		t.Fatalf("the services are marked as %s's, the cluster is %s", mark, own)
	}
	second := config
	second.Dir = t.TempDir()
	ends := func(config Config) {
		t.Helper()
		config.Boot = config.IDs.New()
		server, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Run(patient(t)); fault.CodeOf(err) != fault.OtherServices {
			t.Errorf("a node on another cluster's services: %v", err)
		}
	}
	ends(second)
	if mark != own {
		t.Errorf("who was refused marked the services as %s's", mark)
	}
	second.Services.Rebind = true
	serve(t, second).stop()
	if mark == own {
		t.Error("the services were not taken over")
	}
	ends(config) // the first cluster's next start
}

// After a crash between the mark and the creation, the cluster must still match the mark on its
// services.
func TestClusterIDOutlivesACrash(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	ctx, cancel := context.WithCancel(patient(t))
	var marked []ids.ID
	config.Services.Claim = func(_ context.Context, cluster ids.ID, _ bool) error {
		marked = append(marked, cluster)
		if len(marked) == 1 {
			cancel()
			return errors.New("the mark is written, and the answer lost")
		}
		return nil
	}
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(ctx); err != nil {
		t.Fatal(err)
	}
	again := serve(t, config)
	if id := again.View().Cluster().ID; len(marked) < 2 || marked[0] != id || marked[1] != id {
		t.Errorf("marked as %v's, and the cluster is %s", marked, id)
	}
	again.stop()
}

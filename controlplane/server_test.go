package controlplane

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
)

func TestStateOutlivesARestart(t *testing.T) {
	cfg := testConfig(t, t.TempDir())
	first := serve(t, cfg)
	ctx := patient(t)
	opened, err := client.Do[client.Customer](ctx, first, client.OpenCustomer{Customer: "ann", Entry: cfg.IDs.New()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.stop()

	second := serve(t, cfg)
	view, err := second.Fresh(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if known := view.Customer("ann"); known == nil || *known != opened {
		t.Fatalf("customer after a restart: %+v, want %+v", known, opened)
	}
	if got := view.Wallet("ann").Free; got != cfg.FreeGrant {
		t.Fatalf("%d free requests, want %d", got, cfg.FreeGrant)
	}
	if view.Cluster().Shards != testShards || len(view.Shards()) != testShards {
		t.Fatal("the cluster was not created with its shards")
	}
}

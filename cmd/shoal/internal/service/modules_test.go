package service

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// TestModulesStandBehindWhatTheyNeed: they are built in the order of the table.
func TestModulesStandBehindWhatTheyNeed(t *testing.T) {
	var before []string
	for _, m := range modules() {
		for _, need := range m.needs {
			if !slices.Contains(before, need) {
				t.Errorf("%s needs %s, which does not stand before it", m.name, need)
			}
		}
		if slices.Contains(before, m.name) {
			t.Errorf("%s stands there twice", m.name)
		}
		before = append(before, m.name)
	}
	for _, role := range identity.Roles() {
		if !slices.Contains(before, role) {
			t.Errorf("no module makes the role %s", role)
		}
	}
}

// TestAProcessOpensWhatItsRoleNeeds: it opens nothing for other roles.
func TestAProcessOpensWhatItsRoleNeeds(t *testing.T) {
	authority, err := identity.NewAuthority("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string][]string{
		identity.ControlPlane: {"log", "rows", "work"},
		identity.Fetcher:      {"cache", "egress", "fetcher", "log", "rates", "reader", "web"},
		identity.Ingest:       {"ingest", "log", "reader", "rows", "work"},
		identity.Billing:      {"billing", "log", "reader", "rows", "work"},
		identity.APIServer: {"api", "cache", "egress", "log", "rates", "reader", "rows",
			"work"},
	} {
		t.Run(role, func(t *testing.T) {
			n := nodeOf(t, authority, role)
			if _, err := n.build(t.Context()); err != nil {
				t.Fatal(err)
			}
			var open []string
			for name, is := range map[string]bool{"log": n.services.log != nil,
				"rows":  n.services.store != nil,
				"cache": n.services.cache != nil, "egress": n.egress != nil,
				"reader": n.reader != nil, "web": n.web != nil,
				"rates": n.rates != nil, "work": n.worker != nil, "billing": n.billing != nil,
				"ingest":  n.ingest != nil,
				"fetcher": n.fetcher != nil, "api": n.api != nil} {
				if is {
					open = append(open, name)
				}
			}
			slices.Sort(open)
			if diff := cmp.Diff(want, open); diff != "" {
				t.Error(diff)
			}
			_, err := os.Stat(filepath.Join(n.config.Data, "rows"))
			if stored := err == nil; stored != slices.Contains(want, "rows") {
				t.Errorf("a database is there: %v, %v", stored, err)
			}
		})
	}
}

// nodeOf makes a cluster node with one role; the test's end closes it.
func nodeOf(t *testing.T, authority *identity.Authority, role string) *node {
	t.Helper()
	issued, err := authority.Issue("n1", []string{role}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{config: Config{Data: t.TempDir(), HostRate: 1, HostConnections: 1, MaxHostRate: 1,
		MaxHostConnections: 1,
		Chromium:           NoChromium,
		Cluster: ClusterConfig{Listen: "127.0.0.1:0", GossipListen: "127.0.0.1:0",
			Advertise: "127.0.0.1"}},
		clock: clock.System{}, ids: ids.Random{Now: time.Now}, point: func(string) {},
		services: &Services{}}
	n.config.Cluster.Identity = filepath.Join(n.config.Data, "identity.pem")
	if err := issued.Write(n.config.Cluster.Identity); err != nil {
		t.Fatal(err)
	}
	if err := n.identify(); err != nil {
		t.Fatal(err)
	}
	if n.signals, err = openSignals(t.Context(), n.config, n.name, io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

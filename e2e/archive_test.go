package e2e

import (
	"slices"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestHistoryLeavesAtOnce: with the flags of make archive the state keeps no ended run and no
// ledger entry. Their reports are read from the archive alone.
func TestHistoryLeavesAtOnce(t *testing.T) {
	t.Parallel()
	web := newWeb(t, synthweb.Config{Hosts: 5, PagesPerHost: 2, PageBytes: []int{2500}})
	s := newService(t, web, append(suite.Fast(), suite.AtOnce(0)...)...)
	s.Fill(s.Client, suite.Plenty)
	o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(10)))
	run := o.Launch(t)
	suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	if err := s.Archived(suite.Within(t, suite.Patience)); err != nil {
		t.Fatal(err)
	}
	s.Down(t)
	s.Restart()
	metrics := suite.Must(s.Metrics(t.Context()))(t) // the first count of the state
	for _, table := range []string{"jobs", "entries"} {
		name := `shoal_controlplane_state_objects{table="` + table + `"}`
		if n, counted := metrics[name]; !counted || n != 0 {
			t.Errorf("the state has %v %s, counted: %v", n, table, counted)
		}
	}
	reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	t.Log(suite.Check(t, s.Expected(o), s.WithRecords(reported)))
}

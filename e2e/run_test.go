package e2e

import (
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
)

// TestExactness tests the specification's figure: 100,000 addresses on 1,000 hosts.
func TestExactness(t *testing.T) {
	if !*exactness {
		t.Skip("by -exactness (make exactness)")
	}
	config := suite.Rough(1000, 100)
	config.SlowHosts, config.SlowLatency = 20, 300*time.Millisecond
	web := newWeb(t, config)
	s := newService(t, web, suite.Fast()...)
	s.Fill(s.Client, suite.Plenty)
	o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(100_000)))
	begin := time.Now()
	run := o.Launch(t)
	reported := suite.Must(s.Report(suite.Within(t, 30*time.Minute), run))(t)
	took := time.Since(begin)
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	reported = s.WithRecords(reported)
	sum := suite.Check(t, s.Expected(o), reported)
	t.Logf("%v in %v (%.0f pages/s)", sum, took.Round(time.Millisecond),
		float64(sum.Delivered+sum.Errored)/took.Seconds())
}

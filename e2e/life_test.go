package e2e

import (
	"errors"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestOneProcessPerDirectory: a second process is refused, and does not disturb the first.
func TestOneProcessPerDirectory(t *testing.T) {
	t.Parallel()
	s := newService(t, newWeb(t, synthweb.Config{}), suite.Fast()...)
	first := s.p
	second, err := process.Start(process.Config{Binary: binary(t), Data: s.data, Args: s.args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Kill)
	if err := second.Ready(suite.Within(t, suite.ReadyWithin)); !errors.Is(err, process.ErrEnded) {
		t.Errorf("a second process on the same data: %v", err)
	}
	if _, err := s.Wallet(t.Context()); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
	if _, err := first.Stop(suite.StopLimit); err != nil {
		t.Error(err)
	}
}

// TestStopsFetchNothingTwice stops the process in the middle of a run, which continues seamlessly
// at the next start. No request is repeated.
func TestStopsFetchNothingTwice(t *testing.T) {
	t.Parallel()
	for name, kind := range moveKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, kind.web)
			s := newService(t, web, "--host-rate", "30", "--max-host-rate", "30",
				"--host-connections", "4",
				"--max-host-connections", "4")
			s.Fill(s.Client, suite.Plenty)
			o := kind.order(s.Client, web)
			run := o.Launch(t)
			// more stops than a page has attempts
			for _, pages := range []int64{100, 300, 500, 700, 900, 1000} {
				suite.Begun(t, s.Client, run, pages)
				t.Logf("stopped in %v", suite.Must(s.p.Stop(suite.StopLimit))(t))
				s.start()
			}
			reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
			suite.CheckWallet(t, s.Client)
			reported = s.WithRecords(reported)
			t.Log(suite.Check(t, s.Expected(o), reported))
		})
	}
}

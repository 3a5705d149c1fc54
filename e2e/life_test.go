package e2e

import (
	"errors"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/testkit/process"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// TestOneProcessPerDirectory refuses a second process, which must not disturb the first.
func TestOneProcessPerDirectory(t *testing.T) {
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

package clienttest

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// failures notes errors instead of failing the test.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Error(...any) { f.n++ }

// TestAgainSeesWhatDiffers: a state that its commands do not give, on any machine, is told.
func TestAgainSeesWhatDiffers(t *testing.T) {
	c := New(t, clock.NewManual(time.UnixMilli(1_000)))
	for _, customer := range []string{"ann", "bob"} {
		c.Must(t, client.OpenCustomer{Customer: customer, Entry: ids.Random{Now: time.Now}.New()})
	}
	told := &failures{TB: t}
	c.checkAgain(told)
	if told.n != 0 {
		t.Errorf("%d errors about the same state", told.n)
	}
	c.log.commands = c.log.commands[:len(c.log.commands)-1] // a command that was not replicated
	c.checkAgain(told)
	if told.n != 2 {
		t.Errorf("%d errors about two machines that lack a command", told.n)
	}
	c.log.partial = true
}

// TestAgainIsBounded: a long log is not kept.
func TestAgainIsBounded(t *testing.T) {
	var l log
	for n := range maxAgain + 1 {
		l.add(uint64(n), nil)
	}
	if !l.partial || l.commands != nil {
		t.Errorf("%d commands are kept", len(l.commands))
	}
	l = log{}
	if l.add(1, make([]byte, maxAgainBytes+1)); !l.partial {
		t.Error("a large command is kept")
	}
}

package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/telemetry"
)

// All customers together and each alone stay within their bounds. What is given back can be taken
// again.
func TestSpoolsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spools{reserve: spoolReserve}
		held := map[string]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			customer := fmt.Sprint("c", rapid.IntRange(0, 5).Draw(t, "customer"))
			if held[customer] > 0 && rapid.Bool().Draw(t, "leaves") {
				s.leave(customer, held[customer])
				delete(held, customer)
				continue
			}
			n := rapid.Int64Range(1, maxSpooledOfOne).Draw(t, "bytes")
			free := uint64(rapid.Int64Range(0, 2*maxSpooledOfOne).Draw(t, "free"))
			all := int64(0)
			for _, of := range held {
				all += of
			}
			fits := all+n <= maxSpooled && held[customer]+n <= maxSpooledOfOne+2*spoolStep &&
				free >= uint64(spoolReserve+n)
			err := s.takeBytes(customer, n, func() (uint64, bool) { return free, true })
			if fits != (err == nil) || err != nil && fault.CodeOf(err) != fault.Unavailable {
				t.Fatalf("%d more bytes of %s, %d free, %d held: %v", n, customer, free,
					held[customer], err)
			}
			if err == nil {
				held[customer] += n
			}
		}
		for customer, n := range held {
			s.leave(customer, n)
		}
		if s.all != 0 || len(s.ofOne) != 0 {
			t.Fatalf("%d bytes of %v stay taken", s.all, s.ofOne)
		}
	})
}

func TestNothingIsTakenForAnEmptyBody(t *testing.T) {
	c := &Chain{SpoolDir: t.TempDir(), free: func(string) (uint64, bool) { return 0, true }}
	x := &exchange{Chain: c, body: &body{ended: true}}
	if _, err := x.receive(context.Background(), maxReceived, Verbatim); err != nil {
		t.Error(err)
	}
	for _, undo := range x.undo {
		undo()
	}
	if c.spools.all != 0 || len(c.spools.ofOne) != 0 {
		t.Errorf("%d bytes of %v", c.spools.all, c.spools.ofOne)
	}
}

// Bodies leave the disk's floor free, even if an operator wants none.
func TestBodiesLeaveTheFloor(t *testing.T) {
	for bytes, disk := range map[int64]*telemetry.Disk{spoolReserve: nil, 0: {},
		7: {Floor: telemetry.NewFloor(7)}} {
		c := &Chain{Disk: disk}
		c.Handler(nil)
		if c.spools.reserve != bytes {
			t.Errorf("%d bytes stay free, want %d", c.spools.reserve, bytes)
		}
	}
}

// A body that finds the disk full is refused with a code of its own, and takes no more space.
func TestBodiesLeaveTheDiskItsReserve(t *testing.T) {
	for _, full := range []bool{false, true} {
		c := &Chain{SpoolDir: t.TempDir(), spools: spools{reserve: spoolReserve},
			free: func(string) (uint64, bool) {
				if full {
					return spoolReserve, true
				}
				return 2 * spoolReserve, true
			}}
		x := &exchange{Chain: c,
			body: &body{source: &io.LimitedReader{R: zeros{}, N: 3 * spoolStep / 2}, declared: -1}}
		received, err := x.receive(context.Background(), maxReceived, Verbatim)
		if full != errors.Is(err, errDiskShort) || full != (received == nil) {
			t.Errorf("full %v: %v", full, err)
		}
		if received != nil {
			if n, err := io.Copy(io.Discard, received); n != 3*spoolStep/2 || err != nil {
				t.Errorf("%d bytes come back: %v", n, err)
			}
			if c.spools.all != 2*spoolStep {
				t.Errorf("%d bytes are counted", c.spools.all)
			}
		}
		for _, undo := range x.undo {
			undo()
		}
		left, err := os.ReadDir(c.SpoolDir)
		if c.spools.all != 0 || len(c.spools.ofOne) != 0 || len(left) != 0 || err != nil {
			t.Errorf("%d bytes stay taken, files %v %v", c.spools.all, left, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

package operation

import (
	"net"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// A streamed body may take long, but must not stall, and must end.
func TestPacedBody(t *testing.T) {
	for name, c := range map[string]struct {
		pace  pace
		until time.Time
	}{
		"stands still":  {pace{time.Millisecond, time.Hour, 1}, time.Now().Add(time.Hour)},
		"time has come": {pace{time.Hour, time.Hour, 1}, time.Now().Add(time.Millisecond)},
		"trickles":      {pace{time.Hour, time.Millisecond, 1 << 20}, time.Now().Add(time.Hour)},
	} {
		server, sender := net.Pipe()
		go func() { // sends a byte at a time while somebody reads
			for {
				if _, err := sender.Write([]byte("x")); err != nil || name != "trickles" {
					return
				}
			}
		}()
		b := &body{source: server, declared: -1}
		b.paced(server, c.pace, c.until)
		x := &exchange{Chain: &Chain{SpoolDir: t.TempDir(),
			free: func(string) (uint64, bool) { return 0, false }}, body: b}
		if _, err := x.receive(t.Context(), maxReceived,
			Verbatim); fault.CodeOf(err) != fault.UploadTooSlow {
			t.Errorf("%s: %v", name, err)
		}
		for _, undo := range x.undo {
			undo()
		}
		_ = sender.Close()
		_ = server.Close()
	}
}

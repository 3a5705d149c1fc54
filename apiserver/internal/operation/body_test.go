package operation

import (
	"io"
	"net"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// A streamed body may take long, but not stand still, and not for ever.
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
		go func() { // a byte at a time, as long as somebody reads
			for {
				if _, err := sender.Write([]byte("x")); err != nil || name != "trickles" {
					return
				}
			}
		}()
		s := NewStream("text/uri-list", server)
		s.body.paced(server, c.pace, c.until)
		if _, err := io.ReadAll(s); fault.CodeOf(err) != fault.UploadTooSlow {
			t.Errorf("%s: %v", name, err)
		}
		_ = sender.Close()
		_ = server.Close()
	}
}

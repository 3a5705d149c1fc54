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
		stall time.Duration
		until time.Time
	}{
		"stands still":  {time.Millisecond, time.Now().Add(time.Hour)},
		"time has come": {time.Hour, time.Now().Add(time.Millisecond)},
	} {
		server, sender := net.Pipe()
		s := NewStream("text/uri-list", server)
		s.body.paced(server, c.stall, c.until)
		if _, err := io.ReadAll(s); fault.CodeOf(err) != fault.UploadTooSlow {
			t.Errorf("%s: %v", name, err)
		}
		_ = sender.Close()
		_ = server.Close()
	}
}

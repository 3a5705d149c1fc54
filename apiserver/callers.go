package apiserver

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// maxOfAddress is how many of the server's connections one address has at once, of version 6 one
// /64.
const maxOfAddress = 256

// callers say who has a share of the connections.
type callers struct {
	proxies   forwarded.Proxies // have none: they stand for many
	unlimited bool              // nobody has
	log       *slog.Logger
	refused   prometheus.Counter
}

// holder names whose share a connection from an address is in, "" when it is in nobody's.
func (c *callers) holder(address net.Addr) string {
	from, err := netip.ParseAddrPort(address.String())
	if c.unlimited || err != nil || c.proxies.Trust(from.Addr()) {
		return ""
	}
	return forwarded.Holder(from.Addr())
}

// refuseTime is given to the answer, which fits what every system keeps of a new connection.
const refuseTime = 100 * time.Millisecond

var (
	errManyConnections = fault.New(fault.RateLimited,
		"the address has %d connections open, and may have no more", maxOfAddress)
	errFull = fault.New(fault.Unavailable,
		"the server has %d connections open, and takes no more", maxConnections)
)

// refuse ends a connection that is too many. Its request was not read, so that it may miss the
// answer. Where TLS is spoken there is none: a handshake is dearer than what is refused.
func (c *callers) refuse(conn net.Conn, holder string, why *fault.Error, clear bool) {
	c.refused.Inc()
	if why == errManyConnections {
		c.log.Warn("an address has too many connections open; if it is a proxy, name it in "+
			"--trusted-proxies", "address", holder)
	} else {
		c.log.Warn("all connections are taken: another one is refused")
	}
	if !clear {
		_ = conn.Close() // nothing was said on it
		return
	}
	answer, err := json.Marshal(operation.NewProblem(why, ""))
	if err != nil {
		panic(err) // plain texts and numbers
	}
	status := fault.Lookup(why.Code).Status
	// one that is broken already is closed all the same
	_ = conn.SetWriteDeadline(time.Now().Add(refuseTime))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n"+
		"Connection: close\r\nRetry-After: 5\r\nContent-Length: %d\r\n\r\n%s", status,
		http.StatusText(status), len(answer), answer)
	_ = conn.Close()
}

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

// maxOfAddress is how many connections to the server one address may have open. For IPv6 the limit
// is per /64.
const maxOfAddress = 256

// callers decides which addresses have a limit on their connections.
type callers struct {
	proxies   forwarded.Proxies // trusted proxies have no limit: they stand for many callers
	unlimited bool              // nobody has a limit
	logger    *slog.Logger
	refused   prometheus.Counter
}

// holder names the holder whose limit a connection from address counts against, "" for none.
func (c *callers) holder(address net.Addr) string {
	from, err := netip.ParseAddrPort(address.String())
	if c.unlimited || err != nil || c.proxies.Trust(from.Addr()) {
		return ""
	}
	return forwarded.Holder(from.Addr())
}

// refuseTime is how long the answer may take to write. It fits the send buffer of any system.
const refuseTime = 100 * time.Millisecond

var (
	errManyConnections = fault.New(fault.RateLimited,
		"the address has %d connections open, and may have no more", maxOfAddress)
	errFull = fault.New(fault.Unavailable,
		"the server has %d connections open, and takes no more", maxConnections)
)

// refuse ends a connection beyond a limit. The request has not been read, so the client may miss
// the answer. Over TLS there is no answer: a handshake costs more than the refused call.
func (c *callers) refuse(conn net.Conn, holder string, why *fault.Error, clear bool) {
	c.refused.Inc()
	if why == errManyConnections {
		c.logger.Warn("an address has too many connections open; if it is a proxy, name it in "+
			"--trusted-proxies", "address", holder)
	} else {
		c.logger.Warn("all connections are taken: another one is refused")
	}
	if !clear {
		_ = conn.Close() // nothing was sent on it
		return
	}
	answer, err := json.Marshal(operation.NewProblem(why, ""))
	if err != nil {
		panic(err) // only plain texts and numbers: Marshal cannot fail
	}
	status := fault.Lookup(why.Code).Status
	// a connection that is already broken is closed all the same
	_ = conn.SetWriteDeadline(time.Now().Add(refuseTime))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n"+
		"Connection: close\r\nRetry-After: 5\r\nContent-Length: %d\r\n\r\n%s", status,
		http.StatusText(status), len(answer), answer)
	_ = conn.Close()
}

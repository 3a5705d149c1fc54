//go:build unix

package egress

import (
	"net"
	"syscall"
)

// aliveCheck makes a check that an idle connection has neither ended nor sent anything: one read
// that does not wait. The byte that it may take away does not matter, since such a connection is
// not used again.
func aliveCheck(c net.Conn) func() bool {
	source, ok := c.(syscall.Conn)
	if !ok {
		return func() bool { return false }
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	var readErr error
	var spare [1]byte
	read := func(fd uintptr) bool {
		_, readErr = syscall.Read(int(fd), spare[:])
		return true
	}
	return func() bool {
		return raw.Read(read) == nil &&
			(readErr == syscall.EAGAIN || readErr == syscall.EWOULDBLOCK)
	}
}

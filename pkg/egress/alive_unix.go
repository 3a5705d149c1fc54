//go:build unix

package egress

import (
	"net"
	"syscall"
)

// aliveCheck returns a check that an idle connection has neither ended nor sent anything. It reads
// once without waiting. A byte that it consumes does not matter, since such a connection is not
// reused.
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

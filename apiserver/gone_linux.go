package apiserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone reports whether the client has closed the connection. It neither waits nor reads anything. A
// client that closed only its sending side counts as gone. Unread data before the close, such as
// the close alert of TLS, does not hide it.
func (c *conn) Gone() bool {
	source, ok := c.raw.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(look, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

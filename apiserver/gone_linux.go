package apiserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone says whether the client has closed the connection: a look that neither waits nor takes
// anything. One that has closed its sending side only counts as gone. What it has sent before that,
// as the farewell of TLS, does not hide it.
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

//go:build unix && !linux

package apiserver

import (
	"errors"
	"syscall"
)

// Gone reports whether the client has closed the connection. It neither waits nor reads anything. A
// client that closed only its sending side counts as gone.
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
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waiting := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		gone = n <= 0 && !waiting
	})
	return gone || err != nil
}

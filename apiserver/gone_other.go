//go:build !unix

package apiserver

// Gone always returns false on this system: a call runs to its end even if its client has left.
func (c *conn) Gone() bool { return false }

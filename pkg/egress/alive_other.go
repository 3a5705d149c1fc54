//go:build !unix

package egress

import "net"

// aliveCheck always fails: reads here cannot avoid waiting, so no connection is reused.
func aliveCheck(net.Conn) func() bool { return func() bool { return false } }

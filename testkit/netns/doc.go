// Package netns owns a network for tests of many processes on one machine (Linux, as root). Each
// node has a network namespace, joined by a router whose directed links can be cut. A cut drops
// packets, TCP and UDP, of existing and new connections. Nothing answers, as in a real partition.
// The network has no way out: nothing beyond it is reachable, except the ports that Forward brings
// in.
//
// Each namespace has its own thread and mount namespace. Both end with the process, however it
// ends, and so do the children started there. It owns no process and no service.
package netns

// Package netns owns a network for tests of many processes on one machine (Linux, as root). Each
// node has a network namespace, joined by a router whose directed links can be cut. A cut drops
// packets, TCP and UDP, of connections that stand and of new ones; nothing answers, as in a real
// partition. It has no way out: what a node asks for beyond the network is unreachable, except the
// ports that Forward brings in.
//
// Each namespace has a thread of its own, and a mount namespace with it. Both end with the process,
// however it ends, and so do the children that were started there. It owns no process and no
// service.
package netns

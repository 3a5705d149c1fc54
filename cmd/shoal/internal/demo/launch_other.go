//go:build !linux

package demo

import "syscall"

// ownGroup keeps Ctrl-C from a child: it is meant for this process, which stops the children in
// order. If this process is killed, they keep running.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

//go:build !linux

package demo

import "syscall"

// ownGroup keeps Ctrl-C from a process, which is for this one: it stops the others in order. When
// this one is killed they go on.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

package demo

import (
	"syscall"
)

// ownGroup keeps Ctrl-C from a process, which is for this one: it stops the others in order. When
// this one is killed they end, too: nobody else would end them.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

package demo

import (
	"syscall"
)

// ownGroup keeps Ctrl-C from a child: it is meant for this process, which stops the children in
// order. If this process is killed, they die, too: nobody else would end them.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

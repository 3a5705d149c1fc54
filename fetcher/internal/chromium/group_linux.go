package chromium

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// inGroup gives a browser a process group of its own, and an end with ours.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup ends a browser with all its children.
func killGroup(pid int) {
	if pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // what is gone is gone
	}
}

// memoryOfGroup is the memory, in bytes, that a browser and its children have for themselves.
func memoryOfGroup(pid int) int64 {
	entries, err := os.ReadDir("/proc")
	if err != nil || pid <= 1 {
		return 0
	}
	var pages int64
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if group, err := syscall.Getpgid(child); err != nil || group != pid {
			continue
		}
		statm, err := os.ReadFile("/proc/" + entry.Name() + "/statm")
		if err != nil {
			continue // it has ended
		}
		var size, resident, shared int64
		if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err == nil {
			pages += resident - shared
		}
	}
	return pages * int64(os.Getpagesize())
}

package chromium

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// inGroup gives a browser its own process group, kills it when our process dies, and sets its
// temporary directory. We remove that directory, because a killed browser leaves its files.
func inGroup(cmd *exec.Cmd, dir string) {
	cmd.Env = append(cmd.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a browser with all its children.
func killGroup(pid int) {
	if pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended already
	}
}

// killProcess kills one child of a browser.
func killProcess(pid int) {
	if pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
	}
}

// memoryOfGroup returns the private memory, in bytes, of a browser and its children, and the
// process that has most.
func memoryOfGroup(pid int) (bytes int64, largest int) {
	entries, err := os.ReadDir("/proc")
	if err != nil || pid <= 1 {
		return 0, pid
	}
	var pages, most int64
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
		if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
			continue
		}
		pages += resident - shared
		if resident-shared > most {
			most, largest = resident-shared, child
		}
	}
	return pages * int64(os.Getpagesize()), largest
}

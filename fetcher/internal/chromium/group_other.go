//go:build !linux

package chromium

import (
	"os"
	"os/exec"
)

// inGroup leaves the browser as it is.
func inGroup(*exec.Cmd) {}

// killGroup ends the browser; its children end with it.
func killGroup(pid int) {
	if process, err := os.FindProcess(pid); err == nil && pid > 1 {
		_ = process.Kill()
	}
}

// memoryOfGroup is not known here: the bound of memory does not hold.
func memoryOfGroup(int) int64 { return 0 }

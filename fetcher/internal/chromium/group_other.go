//go:build !linux

package chromium

import (
	"os"
	"os/exec"
)

// inGroup leaves the browser as it is.
func inGroup(*exec.Cmd, string) {}

// killGroup ends the browser; its children end with it.
func killGroup(pid int) {
	if process, err := os.FindProcess(pid); err == nil && pid > 1 {
		_ = process.Kill()
	}
}

// killProcess is not needed where memory is not known.
func killProcess(int) {}

// memoryOfGroup is not known here: the bound of memory does not hold.
func memoryOfGroup(pid int) (bytes int64, largest int) { return 0, pid }

//go:build !linux

package chromium

import (
	"os"
	"os/exec"
)

// inGroup does nothing on this system.
func inGroup(*exec.Cmd, string) {}

// killGroup kills the browser; its children end with it.
func killGroup(pid int) {
	if process, err := os.FindProcess(pid); err == nil && pid > 1 {
		_ = process.Kill()
	}
}

// killProcess does nothing: memory is unknown on this system.
func killProcess(int) {}

// memoryOfGroup returns 0: memory is unknown, so its bound is not enforced.
func memoryOfGroup(pid int) (bytes int64, largest int) { return 0, pid }

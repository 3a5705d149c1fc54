//go:build linux || darwin

package telemetry

import "syscall"

func diskOf(dir string) (disk, bool) {
	var fs syscall.Statfs_t
	if dir == "" || syscall.Statfs(dir, &fs) != nil {
		return disk{}, false
	}
	block := uint64(fs.Bsize) //nolint:unconvert // its type differs between systems
	return disk{size: fs.Blocks * block, free: fs.Bavail * block}, true
}

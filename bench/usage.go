package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"shoal.dev/shoal/testkit/process"
)

// ownUsage returns this process's usage. Its processor time is finer than Linux reports for others.
func ownUsage() (process.Usage, error) {
	used, err := process.UsageOf(os.Getpid())
	if err != nil {
		return used, err
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return used, fmt.Errorf("processor time: %w", err)
	}
	used.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return used, nil
}

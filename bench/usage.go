package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a process has used since its start.
type usage struct {
	cpu     time.Duration // user and system
	peakRSS int64         // bytes
}

// ownUsage is this process's.
func ownUsage() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, fmt.Errorf("processor time: %w", err)
	}
	u := usage{cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	var err error
	u.peakRSS, err = peakRSS(os.Getpid())
	return u, err
}

// clockTick is the unit of /proc/PID/stat: Linux shows user space 100 a second on every platform that Go supports.
const clockTick = time.Second / 100

// usageOf is another process's, as Linux tells it.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("processor time: %w", err)
	}
	var u usage
	if u.cpu, err = parseStat(stat); err != nil {
		return usage{}, err
	}
	u.peakRSS, err = peakRSS(pid)
	return u, err
}

// parseStat reads the processor time out of /proc/PID/stat: fields 14 and 15, where field 2, the name, stands in
// parentheses and may hold anything.
func parseStat(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("processor time: cannot read %q", stat)
	}
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// peakRSS is the most memory that a process has had at once.
func peakRSS(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("memory: %w", err)
			}
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("memory: no VmHWM in the process's status")
}

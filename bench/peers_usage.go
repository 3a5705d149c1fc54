package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"shoal.dev/shoal/testkit/process"
)

// groupUsage is what the processes of a group have used so far, and their children that have ended.
// The peak of the group's memory is the sum of theirs.
func groupUsage(group int) (process.Usage, error) {
	var sum process.Usage
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return sum, fmt.Errorf("processor time: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return sum, fmt.Errorf("processor time: %w", err)
		}
		p, err := parseMember(stat)
		if err != nil {
			return sum, err
		}
		if p.group != group {
			continue
		}
		sum.CPU += p.cpu
		// one that has ended has no memory any more
		if used, err := process.UsageOf(pid); err == nil {
			sum.PeakBytes += used.PeakBytes
		}
	}
	return sum, nil
}

// member is what Linux tells of a process of a group.
type member struct {
	ended bool
	group int
	cpu   time.Duration // user and system, with the children that have ended
}

// clockTick is the unit of /proc/PID/stat: Linux shows user space 100 a second on every platform
// that Go supports.
const clockTick = time.Second / 100

// parseMember reads /proc/PID/stat: fields 3, 5 and 14 to 17.
func parseMember(stat []byte) (member, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return member{}, fmt.Errorf("processor time: cannot read %q", stat)
	}
	p := member{ended: string(fields[0]) == "Z"}
	var err error
	if p.group, err = strconv.Atoi(string(fields[2])); err != nil {
		return p, fmt.Errorf("processor time: %w", err)
	}
	for _, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return p, fmt.Errorf("processor time: %w", err)
		}
		p.cpu += time.Duration(ticks) * clockTick
	}
	return p, nil
}

// hasEnded says whether a child that nobody has waited for has ended.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	p, err := parseMember(stat)
	return err != nil || p.ended
}

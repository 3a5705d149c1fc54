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

// groupUsage is the resource use so far of a group's processes, and of their ended children. The
// group's memory peak is the sum of theirs.
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
		// an ended process no longer has memory
		if used, err := process.UsageOf(pid); err == nil {
			sum.PeakBytes += used.PeakBytes
		}
	}
	return sum, nil
}

// member is a process of a group, as Linux reports it.
type member struct {
	ended bool
	group int
	cpu   time.Duration // user and system, including ended children
}

// clockTick is the unit of /proc/PID/stat: Linux uses 100 per second on every platform that Go
// supports.
const clockTick = time.Second / 100

// parseMember parses /proc/PID/stat: fields 3, 5 and 14 to 17.
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

// hasEnded says whether a child that has not been waited for has ended.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	p, err := parseMember(stat)
	return err != nil || p.ended
}

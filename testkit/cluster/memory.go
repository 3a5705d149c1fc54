//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// memoryGroup is a control group that bounds a node's memory: cgroup v1, or v2 if it has the memory
// controller.
type memoryGroup struct {
	dir, limit string // limit is the name of the limit's file
}

func newMemoryGroup(name string) (*memoryGroup, error) {
	g := &memoryGroup{dir: filepath.Join("/sys/fs/cgroup/memory", name),
		limit: "memory.limit_in_bytes"}
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		g = &memoryGroup{dir: filepath.Join("/sys/fs/cgroup", name), limit: "memory.max"}
		// The controller may already be delegated.
		_ = os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0)
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cluster: memory group: %w", err)
	}
	return g, nil
}

func (g *memoryGroup) add(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

func (g *memoryGroup) set(bytes int64) error {
	return g.write(g.limit,
		strconv.FormatInt(bytes, 10))
}

func (g *memoryGroup) write(file, value string) error {
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0); err != nil {
		return fmt.Errorf("cluster: memory group: %w", err)
	}
	return nil
}

// LimitMemory bounds the memory of processes started from now on. The kernel kills a process that
// uses more, like a container. 0 removes the bound, also from a running process.
func (n *Node) LimitMemory(bytes int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.memory == nil {
		group, err := newMemoryGroup(fmt.Sprintf("shoal-%d-%s", os.Getpid(), n.Name))
		if err != nil {
			return err
		}
		n.memory = group
	}
	if bytes == 0 {
		bytes = 1 << 40
	}
	return n.memory.set(bytes)
}

// launch starts a process of the node in its namespace and within its limits.
func (n *Node) launch(cmd *exec.Cmd) error {
	if err := n.namespace.Start(cmd); err != nil {
		return err
	}
	if n.memory == nil {
		return nil
	}
	return n.memory.add(cmd.Process.Pid)
}

// free removes the control group of a node whose processes have ended.
func (n *Node) free() error {
	if n.memory == nil {
		return nil
	}
	if err := os.Remove(n.memory.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cluster: memory group: %w", err)
	}
	return nil
}

//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespace is one node's network and mounts. Its methods are safe for concurrent use.
type Namespace struct {
	addr  netip.Addr
	path  string // of the network namespace, for ip
	fd    int    // of the same namespace
	tasks chan task
	ended chan struct{}
}

type task struct {
	run  func() error
	done chan error
}

// newNamespace makes a namespace with only a loopback.
func newNamespace(addr netip.Addr) (*Namespace, error) {
	ns := &Namespace{addr: addr, tasks: make(chan task), ended: make(chan struct{})}
	made := make(chan error)
	go ns.keep(made)
	if err := <-made; err != nil {
		return nil, err
	}
	if err := ns.Do(func() error { return ip("link", "set", "lo", "up") }); err != nil {
		return nil, errors.Join(err, ns.close())
	}
	return ns, nil
}

// keep is the namespace's thread. It is never unlocked, so it ends only with the goroutine.
// Children started on it are killed when it ends.
func (ns *Namespace) keep(made chan<- error) {
	defer close(ns.ended)
	runtime.LockOSThread()
	err := func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("netns: unshare (needs root): %w", err)
		}
		// Only the node sees its mounts.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("netns: private mounts: %w", err)
		}
		ns.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		ns.fd, err = unix.Open(ns.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	}()
	made <- err
	if err != nil {
		return
	}
	for task := range ns.tasks {
		task.done <- task.run()
	}
}

// Addr is the node's only address besides the loopback.
func (ns *Namespace) Addr() netip.Addr { return ns.addr }

// Do runs a non-blocking function on the namespace's thread: what it opens, mounts or starts
// belongs to the node.
func (ns *Namespace) Do(run func() error) error {
	t := task{run: run, done: make(chan error, 1)}
	ns.tasks <- t
	return <-t.done
}

// Start starts a command in the namespace. It is killed when the namespace or the process that made
// it ends.
func (ns *Namespace) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return ns.Do(cmd.Start)
}

// Listen listens in the namespace; port 0 picks a free one.
func (ns *Namespace) Listen(at netip.AddrPort) (net.Listener, error) {
	var listener net.Listener
	err := ns.Do(func() (err error) {
		listener, err = net.Listen("tcp", at.String())
		return err
	})
	return listener, err
}

// DialContext dials an address, not a name, from the namespace.
func (ns *Namespace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	// This uses its own thread, since a dial may take long; a socket stays in the namespace in
	// which it was made.
	dialled := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(ns.fd, unix.CLONE_NEWNET); err != nil {
			dialled <- result{err: fmt.Errorf("netns: enter: %w", err)}
			return
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		dialled <- result{conn, err}
	}()
	r := <-dialled
	return r.conn, r.err
}

// MountTmpfs mounts an empty in-memory file system of the given size on a directory. Only the node
// and Do see it.
func (ns *Namespace) MountTmpfs(dir string, bytes int64) error {
	return ns.Do(func() error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			return fmt.Errorf("netns: tmpfs on %s: %w", dir, err)
		}
		return nil
	})
}

func (ns *Namespace) close() error {
	close(ns.tasks)
	<-ns.ended
	return unix.Close(ns.fd)
}

// ip runs ip(8) in the namespace of the calling thread.
func ip(args ...string) error {
	output, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("netns: ip %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

//go:build linux

package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// aloneVariable names the test that a process was started for.
const aloneVariable = "SHOAL_TEST_ALONE"

// Alone reruns the calling test in its own process, whose network has no way out. There every
// address, IPv4 and IPv6, is local. So what a test requests by mistake reaches only the test. Alone
// returns true there, where the test continues. Here it returns false, after the other process's
// result has become this test's.
//
// It needs root, or user namespaces for everyone. Without them it skips the test, but fails it in
// continuous integration (CI is set).
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		if err := becomeEverybody(); err != nil {
			t.Fatal(err)
		}
		return true
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$"}
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.") && !strings.HasPrefix(arg, "-test.run") &&
			!strings.Contains(arg, "profile") {
			args = append(args, arg)
		}
	}
	output, err := runAlone(t, binary, args)
	t.Logf("alone:\n%s", output)
	switch {
	case isRefused(err) && os.Getenv("CI") == "":
		t.Skipf("no network namespace can be made here (root, or user namespaces for everyone): %v",
			err)
	case err != nil:
		t.Errorf("alone: %v", err)
	case !strings.Contains(output, "PASS") || strings.Contains(output, "no tests to run"):
		t.Error("alone: the test did not run")
	}
	return false
}

// AskAt makes the process that Alone has started, and its children, resolve names only at an
// address, port 53.
func AskAt(t *testing.T, server netip.Addr) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file,
		fmt.Appendf(nil, "nameserver %s\noptions attempts:5 timeout:5\n", server),
		0o644); err != nil {
		t.Fatal(err)
	}
	// Make mounts private to the process, so that the machine does not see this one.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	// The mount also ends with the process.
	t.Cleanup(func() { _ = unix.Unmount("/etc/resolv.conf", unix.MNT_DETACH) })
}

// runAlone runs the command in its own namespaces: as root of this machine, or else as root of a
// user namespace.
func runAlone(t *testing.T, binary string, args []string) (output string, err error) {
	t.Helper()
	for _, flags := range []uintptr{0, unix.CLONE_NEWUSER} {
		if flags == 0 && os.Geteuid() != 0 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: flags | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
			Pdeathsig:  syscall.SIGKILL}
		if flags != 0 {
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0,
				HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0,
				HostID: os.Getegid(), Size: 1}}
		}
		// The child dies with the thread that made it, so that thread stays.
		said := make(chan error)
		var out []byte
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var err error
			out, err = cmd.CombinedOutput()
			said <- err
		}()
		if err = <-said; !isRefused(err) {
			return string(out), err
		}
	}
	return "", err
}

// isRefused says that the machine does not let us make namespaces.
func isRefused(err error) bool {
	path := (*os.PathError)(nil)
	return errors.As(err, &path) &&
		(errors.Is(path.Err, syscall.EPERM) || errors.Is(path.Err, syscall.ENOSPC) ||
			errors.Is(path.Err, syscall.EINVAL))
}

// becomeEverybody brings up the loopback of an empty network namespace and makes every address
// local.
func becomeEverybody() error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	if len(interfaces) != 1 || interfaces[0].Flags&net.FlagLoopback == 0 ||
		interfaces[0].Flags&net.FlagUp != 0 {
		return fmt.Errorf("netns: not alone: this network has %d interfaces", len(interfaces))
	}
	lo := uint32(interfaces[0].Index)
	up := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(up[4:], lo)
	binary.NativeEndian.PutUint32(up[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(up[12:], unix.IFF_UP)
	if err := netlink(unix.RTM_NEWLINK, 0, up); err != nil {
		return fmt.Errorf("netns: start the loopback: %w", err)
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		// "ip route add local default dev lo": every address is local and delivered here.
		route := []byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST,
			unix.RTN_LOCAL,
			0, 0, 0, 0}
		route = binary.NativeEndian.AppendUint16(route, 8)
		route = binary.NativeEndian.AppendUint16(route, unix.RTA_OIF)
		route = binary.NativeEndian.AppendUint32(route, lo)
		if err := netlink(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, route); err != nil {
			return fmt.Errorf("netns: make every address local: %w", err)
		}
	}
	return nil
}

// netlink makes one change of the network and waits for the kernel's answer.
func netlink(kind, flags uint16, payload []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(payload)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	// sequence number and port are 0, since there is only one request
	message = append(message, make([]byte, 8)...)
	if err := unix.Sendto(fd, append(message, payload...), 0,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("an answer of %d bytes that is none", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

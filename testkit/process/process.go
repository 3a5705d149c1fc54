// Package process runs the real binary as a child. It builds the binary, starts it on a data
// directory, waits until it serves, kills or stops it, and starts it again. It owns the child, but
// not what the child does.
package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Files of a data directory through which a child is found.
const (
	addressFile = "address"
	keyFile     = "api-key"
)

const (
	pollInterval = 3 * time.Millisecond // of files and /readyz, while a child starts
	logBytes     = 256 << 10            // kept of a child's output
	dumpLimit    = 5 * time.Second      // for the dump of its goroutines
)

// Build builds the command into dir and returns the binary's path. With race it enables the race
// detector. flags are flags of go build.
func Build(ctx context.Context, dir string, race bool, flags ...string) (string, error) {
	binary := filepath.Join(dir, "shoal")
	args, env := append([]string{"build", "-o", binary}, flags...), os.Environ()
	if race {
		args, env = append(args, "-race"), append(env, "CGO_ENABLED=1")
	}
	build := exec.CommandContext(ctx, "go", append(args, "shoal.dev/shoal/cmd/shoal")...)
	build.Env = env
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, output)
	}
	return binary, nil
}

// Config says what to run.
type Config struct {
	Binary  string
	Command string   // the serving command; default serve
	Data    string   // directory
	Listen  string   // HOST:PORT of the API; default 127.0.0.1:0
	Args    []string // of the command, in addition to --data and --listen
	Env     []string // KEY=VALUE, in addition to the environment
	// Launch starts the child and its commands, perhaps elsewhere; default (*exec.Cmd).Start.
	Launch func(*exec.Cmd) error
}

// Process is one child. Its methods are safe for concurrent use.
type Process struct {
	config Config
	cmd    *exec.Cmd
	said   tail
	ended  chan struct{}
	err    error     // of Wait; readable once ended is closed
	at     time.Time // when it was seen dead; likewise
	server string    // set by Ready
	key    string
}

// Start launches the command. The child of an earlier Start must have ended.
func Start(config Config) (*Process, error) {
	// A killed child leaves its address file behind.
	if err := os.Remove(filepath.Join(config.Data, addressFile)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("process: %w", err)
	}
	command := cmp.Or(config.Command, "serve")
	args := append([]string{command, "--data", config.Data, "--listen",
		cmp.Or(config.Listen, "127.0.0.1:0")},
		config.Args...)
	p := &Process{config: config, cmd: exec.Command(config.Binary, args...),
		ended: make(chan struct{})}
	// A browser on this machine must not affect tests; tests that need one say so.
	p.cmd.Env = append(append(os.Environ(), "SHOAL_CHROMIUM=none"), config.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := config.launch(p.cmd); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.at = time.Now()
		close(p.ended)
	}()
	return p, nil
}

func (c *Config) launch(cmd *exec.Cmd) error {
	if c.Launch != nil {
		return c.Launch(cmd)
	}
	return cmd.Start()
}

// ErrEnded is wrapped when the child ended before it served.
var ErrEnded = errors.New("process: the child has ended")

// Ready waits until calls are served.
func (p *Process) Ready(ctx context.Context) error {
	for {
		if p.serves(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process: not ready: %w\n%s", ctx.Err(), p.Said())
		case <-p.ended:
			return fmt.Errorf("%w\n%s", errors.Join(ErrEnded, p.err), p.Said())
		case <-time.After(pollInterval):
		}
	}
}

func (p *Process) serves(ctx context.Context) bool {
	server, err := os.ReadFile(filepath.Join(p.config.Data, addressFile))
	if err != nil || len(server) == 0 {
		return false
	}
	key, err := os.ReadFile(filepath.Join(p.config.Data, keyFile))
	if err != nil || len(key) == 0 {
		return false
	}
	p.server, p.key = strings.TrimSpace(string(server)), strings.TrimSpace(string(key))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Server is the API's base address, once Ready has returned nil.
func (p *Process) Server() string { return p.server }

// Key is the self-hosting customer's API key, once Ready has returned nil.
func (p *Process) Key() string { return p.key }

// Ended is closed when the child is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Died returns when the child was seen gone; it waits for the end.
func (p *Process) Died() time.Time {
	<-p.ended
	return p.at
}

// Killed says whether the child ended by SIGKILL, its own or another's. It waits for the end.
func (p *Process) Killed() bool {
	<-p.ended
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Kill ends the child at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
}

// Pause freezes the child (SIGSTOP) until Resume.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume continues a paused child.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("process: %v: %w", signal, err)
	}
	return nil
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the child with SIGTERM and returns how long it took. It fails if the child does not end
// within limit, or exits with a code other than 0.
func (p *Process) Stop(limit time.Duration) (time.Duration, error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("process: stop: %w\n%s", err, p.Said())
	}
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.dump()
		return limit, fmt.Errorf("process: did not stop within %v\n%s", limit, p.Said())
	}
	if p.err != nil {
		return 0, fmt.Errorf("process: stop: %w\n%s", p.err, p.Said())
	}
	return p.at.Sub(begin), nil
}

// dump ends the child with SIGQUIT, so that it prints its goroutines.
func (p *Process) dump() {
	if p.signal(syscall.SIGQUIT) == nil {
		select {
		case <-p.ended:
		case <-time.After(dumpLimit):
		}
	}
	p.Kill()
}

// Said returns the end of the child's output.
func (p *Process) Said() string { return p.said.String() }

// Command runs a command of the binary on the child's data directory and returns what it wrote to
// standard output.
func (p *Process) Command(ctx context.Context, args ...string) (string, error) {
	return Run(ctx, p.config, args...)
}

// Run runs a command of the binary to its end, on the data directory of config and without its
// Args. It returns the command's standard output.
func Run(ctx context.Context, config Config, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, config.Binary, args...)
	cmd.Env = append(append(os.Environ(), config.Env...), "SHOAL_DATA="+config.Data)
	var output, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaint
	err := config.launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return output.String(),
			fmt.Errorf("process: shoal %s: %w: %s", strings.Join(args, " "), err, complaint.Bytes())
	}
	return strings.TrimSpace(output.String()), nil
}

// Usage is a child's resource use so far (Linux).
type Usage struct {
	PeakBytes int64 // peak memory (VmHWM)
	Bytes     int64 // current memory (VmRSS)
	OwnBytes  int64 // the part of Bytes without mapped files, mainly its program (RssAnon)
	CPU       time.Duration
}

// Usage reads the child's resource use.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.cmd.Process.Pid) }

// UsageOf reads the resource use of any process.
func UsageOf(pid int) (Usage, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	content, err := os.ReadFile(path)
	if err != nil {
		return Usage{}, fmt.Errorf("process: usage: %w", err)
	}
	var usage Usage
	for line := range strings.Lines(string(content)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		n, err := strconv.ParseInt(kib, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmHWM":
			usage.PeakBytes = n << 10
		case "VmRSS":
			usage.Bytes = n << 10
		case "RssAnon":
			usage.OwnBytes = n << 10
		}
	}
	if usage.PeakBytes == 0 {
		return usage, fmt.Errorf("process: usage: no VmHWM in %s", path)
	}
	usage.CPU, err = cpuOf(pid)
	return usage, err
}

// ticks is Linux's unit of processor time, per second, on every platform that Go supports.
const ticks = 100

func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("process: usage: %w", err)
	}
	// The command's name, in brackets, may contain anything; user and system time are the 12th and
	// 13th fields after it.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("process: usage: cannot read %q", content)
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks, errors.Join(errUser, errSystem)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - logBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

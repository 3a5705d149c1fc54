package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"shoal.dev/shoal/testkit/synthweb"
)

// serveWeb is the web's process: it reports where it listens, and serves until it is told to stop.
func serveWeb(ctx context.Context, addresses string) error {
	n, err := strconv.Atoi(addresses)
	if err != nil {
		return fmt.Errorf("%s: %w", webMode, err)
	}
	web, err := synthweb.New(webConfig(n))
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%s: %w", webMode, err)
	}
	fmt.Println(listener.Addr())
	return web.Serve(ctx, listener)
}

// webProcess is a web in its own process.
type webProcess struct {
	address string
	command *exec.Cmd
}

func startWeb(ctx context.Context, mode string, addresses int) (*webProcess, error) {
	command, err := ourselves(ctx, mode, strconv.Itoa(addresses))
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	web := &webProcess{command: command}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("web: it does not say where it is: %w", err), web.stop())
	}
	web.address = strings.TrimSpace(line)
	return web, nil
}

func (w *webProcess) stop() error { return stopProcess("web", w.command) }

// cpu returns the processor time that the web has used.
func (w *webProcess) cpu(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.address+"/stats",
		nil)
	if err != nil {
		return 0, fmt.Errorf("web: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("web: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	var stats synthweb.Stats
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("web: stats: %w", err)
	}
	return stats.CPU, nil
}

// stopTime is how long a process may take to stop before it is killed.
const stopTime = 15 * time.Second

// ourselves returns a process of this binary that the context ends with SIGTERM.
func ourselves(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own binary: %w", err)
	}
	command := newCommand(ctx, self, args...)
	command.Stderr = os.Stderr
	return command, nil
}

// newCommand returns a process that the context ends with SIGTERM.
func newCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTime
	return command
}

// stopProcess ends a process with SIGTERM and requires it to exit cleanly.
func stopProcess(name string, command *exec.Cmd) error {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil &&
		!errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	kill := time.AfterFunc(stopTime, func() { _ = command.Process.Kill() })
	defer kill.Stop()
	if err := command.Wait(); err != nil {
		return fmt.Errorf("%s did not end well: %w", name, err)
	}
	return nil
}

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

const (
	readyEvery = 100 * time.Millisecond // how often a starting process is asked whether it is ready
	nodeStops  = 45 * time.Second       // until a process that was asked to stop is killed

	maxLastWords = 2 << 10 // of a process that ended with an error
	maxReadyz    = 1 << 10 // bytes of an answer
)

var errNotReady = errors.New("it does not become ready")

// processes starts each node as a process of this program.
type processes struct{ program string }

func newProcesses() (*processes, error) {
	program, err := os.Executable()
	return &processes{program: program}, err
}

func (*processes) where() string { return "each a process of its own" }

func (*processes) close() error { return nil }

// launch starts a process that writes its output to its data directory.
func (p *processes) launch(_ context.Context, config service.Config) (running, error) {
	output, err := os.OpenFile(filepath.Join(config.Data, "output"),
		os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	before, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	command := exec.Command(p.program, config.Args()...)
	// Unlike flags, the environment is not readable by others.
	command.Env = append(os.Environ(), config.Services.Environment()...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = ownGroup()
	r := &process{command: command, done: make(chan struct{}),
		ready: "http://" + config.OpsListen + "/api/readyz"}
	started := make(chan error)
	go func() {
		// The process dies with the thread that started it (Pdeathsig), so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(r.done)
		defer func() { _ = output.Close() }()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		if r.err = command.Wait(); r.err != nil {
			// It takes whatever can be read.
			said, _ := io.ReadAll(io.NewSectionReader(output, before, maxLastWords))
			r.err = fmt.Errorf("%w: %s", r.err, bytes.TrimSpace(said))
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return r, nil
}

// process is a node that is a process.
type process struct {
	command *exec.Cmd
	ready   string // URL that reports readiness
	done    chan struct{}
	err     error // set once done is closed
}

func (p *process) await(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.ready, nil)
		if err != nil {
			return err
		}
		if answer, err := client.Do(request); err == nil {
			var ready struct{ PID int }
			// An unreadable answer comes from another program.
			_ = json.NewDecoder(io.LimitReader(answer.Body, maxReadyz)).Decode(&ready)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK && ready.PID == p.command.Process.Pid {
				return nil
			}
		}
		select {
		case <-p.done:
			return hasEnded(p.err)
		case <-ctx.Done():
			return errNotReady
		case <-time.After(readyEvery):
		}
	}
}

func (p *process) ended() <-chan struct{} { return p.done }

func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		var exit *exec.ExitError
		if errors.As(p.err, &exit) && exit.ExitCode() == terminal.ExitInterrupted {
			return nil // before it served
		}
		return p.err
	case <-time.After(nodeStops):
		return errors.Join(errors.New("it does not stop, and is killed"), p.kill())
	}
}

func (p *process) kill() error {
	err := p.command.Process.Kill()
	<-p.done
	return err
}

// together starts all nodes in this process, on one shared log and row store.
type together struct{ on *service.Services }

// startTogether opens what the nodes share, with rows in a directory.
func startTogether(dir string) (launcher, error) {
	on, err := service.OpenEmbedded(filepath.Join(dir, "rows"))
	if err != nil {
		return nil, err
	}
	return &together{on: on}, nil
}

func (*together) where() string {
	return "all in this process, on a log in its memory and rows in SQLite"
}

func (t *together) close() error { return t.on.Close() }

func (t *together) launch(ctx context.Context, config service.Config) (running, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &inProcess{cancel: cancel, ready: make(chan struct{}), done: make(chan struct{})}
	config.Ready = func(string) { close(r.ready) }
	go func() {
		r.err = service.RunOn(inner, config, t.on)
		close(r.done)
	}()
	return r, nil
}

// inProcess is a node in this process.
type inProcess struct {
	cancel context.CancelFunc
	ready  chan struct{}
	done   chan struct{}
	err    error // set once done is closed
}

func (n *inProcess) await(ctx context.Context) error {
	select {
	case <-n.ready:
		return nil
	case <-n.done:
		return hasEnded(n.err)
	case <-ctx.Done():
		return errNotReady
	}
}

// hasEnded is the error of a node that ended instead of serving.
func hasEnded(why error) error {
	if why == nil {
		return errors.New("it has ended")
	}
	return fmt.Errorf("it has ended: %w", why)
}

func (n *inProcess) ended() <-chan struct{} { return n.done }

func (n *inProcess) stop() error {
	n.cancel()
	<-n.done
	return n.err
}

// kill stops the node: a part of a process cannot crash alone.
func (n *inProcess) kill() error { return n.stop() }

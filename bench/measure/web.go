package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// webCommand is the hidden subcommand of `shoal bench` that runs a web.
const webCommand = "web"

// served is what a web's process reports once it serves.
type served struct {
	Address   string
	Authority []byte // PEM; nil without TLS
}

// ServeWeb is the process of a web. It reads its configuration as JSON from in and reports its
// address on out. It serves until the context or the input ends, so it never outlives its parent.
func ServeWeb(ctx context.Context, in io.Reader, out io.Writer) error {
	var config synthweb.Config
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("bench: web: %w", err)
	}
	if err := json.Unmarshal(line, &config); err != nil {
		return fmt.Errorf("bench: web: %w", err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: web: %w", err)
	}
	w, err := synthweb.New(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := json.NewEncoder(out).Encode(served{listener.Addr().String(),
		w.Authority()}); err != nil {
		return errors.Join(fmt.Errorf("bench: web: %w", err), listener.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with the process at the latest: a read cannot be cancelled
		_, _ = io.Copy(io.Discard, input)
		stop()
	}()
	return w.Serve(ctx, listener)
}

// web is a synthetic web in its own process, so that its resource use can be told apart. The
// embedded Web is a twin that does not serve: it knows the addresses and their truth.
type web struct {
	*synthweb.Web
	place     string // HOST:PORT
	authority string // file, "" without TLS
	command   *exec.Cmd
	input     io.Closer
	before    process.Usage // at the beginning of the measured span
	begun     time.Time
}

// startWeb starts a web.
func (b *Bench) startWeb(ctx context.Context, config synthweb.Config) (*web, error) {
	known, err := synthweb.New(config)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("bench: web: %w", err)
	}
	command := exec.CommandContext(ctx, b.Program, "bench", webCommand)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopWithin
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: web: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: web: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("bench: web: %w", err)
	}
	w := &web{Web: known, command: command, input: input}
	if err := w.await(append(text, '\n'), input, output, b.Dir); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// await sends the process its configuration and waits until it serves.
func (w *web) await(config []byte, input io.Writer, output io.Reader, dir string) error {
	if _, err := input.Write(config); err != nil {
		return fmt.Errorf("bench: web: %w", err)
	}
	var said served
	if err := json.NewDecoder(output).Decode(&said); err != nil {
		return fmt.Errorf("bench: web: it does not say where it is: %w", err)
	}
	w.place = said.Address
	if said.Authority == nil {
		return nil
	}
	w.authority = filepath.Join(dir, fmt.Sprintf("authority-%d.pem", w.command.Process.Pid))
	if err := os.WriteFile(w.authority, said.Authority, 0o600); err != nil {
		return fmt.Errorf("bench: web: %w", err)
	}
	return nil
}

// origin is the origin map entry that directs a service to the web.
func (w *web) origin() string { return w.Pattern() + "=" + w.place }

// environment makes a process trust the web's certificates.
func (w *web) environment() []string {
	if w.authority == "" {
		return nil
	}
	return []string{"SSL_CERT_FILE=" + w.authority}
}

// markSpan marks the beginning of the span for share.
func (w *web) markSpan() (err error) {
	w.begun = time.Now()
	w.before, err = process.UsageOf(w.command.Process.Pid)
	return err
}

// share is the processor time that the web has used since markSpan, in cores.
func (w *web) share() (float64, error) {
	now, err := process.UsageOf(w.command.Process.Pid)
	return (now.CPU - w.before.CPU).Seconds() / time.Since(w.begun).Seconds(), err
}

// stop ends the web.
func (w *web) stop() error {
	err := w.input.Close()
	kill := time.AfterFunc(stopWithin, func() { _ = w.command.Process.Kill() })
	defer kill.Stop()
	if waited := w.command.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("bench: the web did not end well: %w", waited))
	}
	return err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/process"
)

// loopCrawler is the service as people run it, with all roles in one process, and its own command
// line as the client. Only the service is measured.
type loopCrawler struct {
	binary, data string
	serve        *exec.Cmd
	said         *bytes.Buffer // output of serve
	fields       []model.Field
	job          string // the last run
}

// buildShoal builds the product's binary from the bench's module.
func buildShoal(ctx context.Context, path string) error {
	build := newCommand(ctx, "go", "build", "-o", path, "shoal.dev/shoal/cmd/shoal")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build shoal: %w\n%s", err, quote(said))
	}
	return nil
}

func startLoop(ctx context.Context, t task) (crawler, error) {
	data, err := os.MkdirTemp(t.Dir, "data")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	l := &loopCrawler{binary: t.Shoal, data: data, said: &bytes.Buffer{}, fields: fields(t.Absent)}
	connections := strconv.Itoa(max(t.Concurrency/hosts, 1))
	flags := append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0",
		"--no-rate-limits",
		"--egress-allow", "127.0.0.0/8", "--egress-origin", "*.example=" + t.Web,
		"--host-rate", "1e6", "--max-host-rate", "1e6",
		"--host-connections", connections, "--max-host-connections", connections}, t.Serve...)
	l.serve = newCommand(ctx, t.Shoal, flags...)
	l.serve.Stdout, l.serve.Stderr = l.said, l.said
	if t.Profile != "" {
		l.serve.Env = append(os.Environ(), "SHOAL_CPUPROFILE="+t.Profile)
	}
	if err := l.serve.Start(); err != nil {
		return nil, fmt.Errorf("start shoal serve: %w", err)
	}
	if err := l.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	// 1,000 EUR, so that no run of the bench stops for lack of money.
	_, err = l.shoal(ctx, nil, "wallet", "adjust", "--micros", "1000000000", "--note", "bench")
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// readyTime is how long serve may take to start.
const readyTime = 30 * time.Second

// awaitReady waits for the address file, which serve writes once it serves calls.
func (l *loopCrawler) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(filepath.Join(l.data, "address")); err == nil {
			return nil
		}
		if _, err := process.UsageOf(l.serve.Process.Pid); err != nil {
			return fmt.Errorf("shoal serve has ended")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("shoal serve is not ready: %w", ctx.Err())
		case <-look.C:
		}
	}
}

// shoal runs another command of the product and returns its output.
func (l *loopCrawler) shoal(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	command := newCommand(ctx, l.binary, append(args, "--data", l.data)...)
	command.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("shoal %s: %w\n%s", strings.Join(args[:2], " "), err,
			quote(said.Bytes()))
	}
	return out, nil
}

// crawl launches a run and waits for its end, when every page is stored and charged.
func (l *loopCrawler) crawl(ctx context.Context, addresses []string) error {
	args := []string{"run", "--url-file", "-", "--group", "bench", "--json", "--follow"}
	for _, field := range l.fields {
		text := field.Name + "=" + field.Selector
		if field.Kind == model.Attr {
			text += "@" + field.Attr
		}
		args = append(args, "--field", text)
	}
	out, err := l.shoal(ctx, []byte(strings.Join(addresses, "\n")+"\n"), args...)
	if err != nil {
		return err
	}
	var launch struct{ JobID string }
	if err := json.Unmarshal(out, &launch); err != nil {
		return fmt.Errorf("shoal run answered %q: %w", quote(out), err)
	}
	l.job = launch.JobID
	return nil
}

func (l *loopCrawler) rows(ctx context.Context) ([][]byte, error) {
	out, err := l.shoal(ctx, nil, "rows", "--job", l.job, "--format", "jsonl")
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSpace(out), []byte("\n")), nil
}

func (l *loopCrawler) usage() (process.Usage, error) { return process.UsageOf(l.serve.Process.Pid) }

func (l *loopCrawler) close() error {
	if err := stopProcess("shoal serve", l.serve); err != nil {
		return fmt.Errorf("%w\n%s", err, quote(l.said.Bytes()))
	}
	return os.RemoveAll(l.data)
}

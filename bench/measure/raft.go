package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/stream"
)

// Raft measures the control plane's writes.
type Raft struct {
	Time    time.Duration `help:"Duration of each case." default:"5s"`
	Writers []int         `help:"Numbers of concurrent callers, one case each." default:"1,8,64,256"`
	Dir     string        `help:"Directory for the Raft log, on the disk to measure; by default one for temporary files." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*Raft) Help() string {
	return `A single-node control plane takes small commands. Each returns once it is on the disk (fsync) and applied. Concurrent
commands share a write. The disk is that of --dir; "fsync alone" is the time to make 200 bytes durable there without
anything else.

Example: shoal bench raft --dir /var/lib/shoal --writers 1,64`
}

// Measure measures all cases.
func (m *Raft) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	if len(m.Writers) == 0 {
		return fmt.Errorf("--writers: %w: want at least one number", ErrFlags)
	}
	for _, writers := range m.Writers {
		if err := positive(map[string]int{"writers": writers}); err != nil {
			return err
		}
	}
	if m.Dir != "" {
		if info, err := os.Stat(m.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("--dir: %w: want a directory that is there", ErrFlags)
		}
		elsewhere := *on
		elsewhere.Dir, on = m.Dir, &elsewhere
	}
	dir, err := on.directory("raft")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers do not matter
	table := report.table("Small commands, durable and applied when they return:", "callers",
		"commands/s", "p50, ms",
		"p99, ms", "longest, ms", "CPU a command, µs")
	on.Say("raft: fsync alone")
	alone, err := m.syncs(ctx, filepath.Join(dir, "sync"))
	if err != nil {
		return err
	}
	table.add("fsync alone", float64(alone.n)/m.Time.Seconds(), millis(alone.quantile(0.5)),
		millis(alone.quantile(0.99)),
		millis(alone.longest), math.NaN())
	return withControlPlane(ctx, dir, func(c client.Client) error {
		for _, writers := range m.Writers {
			on.Say("raft: %d callers", writers)
			if err := m.measure(ctx, c, writers, table); err != nil {
				return fmt.Errorf("%d callers: %w", writers, err)
			}
		}
		return nil
	})
}

// syncs repeatedly appends a little to a file and makes it durable.
func (m *Raft) syncs(ctx context.Context, path string) (*histogram, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = file.Close() }() // what matters is already synced
	h := &histogram{}
	entry := make([]byte, 200)
	for end := time.Now().Add(m.Time); time.Now().Before(end); {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		begun := time.Now()
		if _, err := file.Write(entry); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		if err := file.Sync(); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		h.add(time.Since(begun))
	}
	return h, nil
}

func (m *Raft) measure(ctx context.Context, c client.Client, writers int, table *Table) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cpu, err := ownCPU()
	if err != nil {
		return err
	}
	begun := time.Now()
	end := begun.Add(m.Time)
	each := make([]histogram, writers)
	var running sync.WaitGroup
	for i := range each {
		running.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				at := time.Now()
				if _, err := client.Do(ctx, c, client.TouchKeys{}, nil); err != nil {
					cancel(err)
				}
				each[i].add(time.Since(at))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	took := time.Since(begun)
	now, err := ownCPU()
	all := &histogram{}
	for i := range each {
		all.merge(&each[i])
	}
	table.add(strconv.Itoa(writers), float64(all.n)/took.Seconds(), millis(all.quantile(0.5)),
		millis(all.quantile(0.99)),
		millis(all.longest), micros(now-cpu)/float64(all.n))
	return err
}

// withControlPlane runs use with a standalone control plane on its own directory.
func withControlPlane(ctx context.Context, dir string, use func(client.Client) error) (err error) {
	settings := controlplane.Defaults()
	log, err := stream.NewMemory(stream.Config{Partitions: int(settings.Shards)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	store, err := sqlite.Open(sqlite.Config{Dir: filepath.Join(dir, "rows")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	settings.Dir, settings.Node, settings.Roles = dir, "bench", []string{"controlplane"}
	settings.Log, settings.Store, settings.Logger = log, store, slog.New(slog.DiscardHandler)
	settings.HostOf = func(url string) string { return url }
	settings.ShardOf = func(string) int { return 0 }
	server, err := controlplane.New(settings)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- server.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	select {
	case <-server.Ready():
		return use(server.Client())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

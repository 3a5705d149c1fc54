package clickhouse_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// proxy forwards connections from stores to the server, and can cut them.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns []net.Conn
	group sync.WaitGroup
}

func newProxy(t *testing.T, server string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server}
	p.group.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.group.Wait()
	})
	return p
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			p.group.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_, _ = way[0].Close(), way[1].Close()
			})
		}
	}
}

// cut ends all connections, even in the middle of a request.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// storm lets writers store the same units while harm is done. Each writer repeats until it has its
// receipts, as ingest does. storm ends when all are done.
func storm(c *cluster, url string, writers, units int, harm func(ctx context.Context)) {
	c.Helper()
	told := outcome{receipts: map[uint32][]*model.Receipt{}}
	ctx, cancel := context.WithCancel(c.Context())
	var group, harms sync.WaitGroup
	for w := range writers {
		store := open(c, clickhouse.Config{URL: url, Database: c.db,
			Node: fmt.Sprint("writer-", w)})
		c.Cleanup(func() { _ = store.Close() })
		var plan []rowstore.PageWrite
		for seq := range uint32(units) {
			plan = append(plan, c.page(seq, c.ids.New(), 1+int(seq)%3+w))
		}
		if w%2 == 1 {
			slices.Reverse(plan)
		}
		group.Go(func() {
			for batch := range slices.Chunk(plan, 5) {
				for done := false; !done; {
					done = persist(c, store, batch, &told)
				}
			}
		})
	}
	harms.Go(func() { harm(ctx) })
	group.Wait()
	cancel()
	harms.Wait()
	told.check(c, c.open(nil), units)
}

// persist tries once, for a short while.
func persist(c *cluster, store *clickhouse.Store, batch []rowstore.PageWrite, told *outcome) bool {
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
	defer cancel()
	receipts, err := store.PutPages(ctx, batch)
	if err == nil {
		told.note(receipts)
		return true
	}
	select { // ingest pauses, too
	case <-time.After(50 * time.Millisecond):
		return false
	case <-c.Context().Done():
		c.Error(err)
		return true
	}
}

// pause waits, and reports false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// TestBrokenConnections: connections break in the middle of requests and answers. Nothing is stored
// twice, and no receipt changes.
func TestBrokenConnections(t *testing.T) {
	address, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, address.Host)
	address.Host = p.listener.Addr().String()
	c := newCluster(t)
	c.open(nil) // migrates
	random := rand.New(rand.NewPCG(1, 2))
	storm(c, address.String(), 3, 90, func(ctx context.Context) {
		for range 40 {
			if !pause(ctx, time.Duration(20+random.IntN(300))*time.Millisecond) {
				return
			}
			p.cut()
		}
	})
}

// process returns the server's pid file, which $CLICKHOUSE_PIDFILE names.
func process(t *testing.T) (pidFile string) {
	t.Helper()
	if pidFile = os.Getenv("CLICKHOUSE_PIDFILE"); pidFile == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") != "" {
			t.Fatal("CLICKHOUSE_PIDFILE has to name the server's pid file")
		}
		t.Skip("CLICKHOUSE_PIDFILE is not set: the server is not ours to stop")
	}
	return pidFile
}

func signal(t *testing.T, pidFile string, s syscall.Signal) (pid int) {
	text, err := os.ReadFile(pidFile)
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err == nil {
		err = syscall.Kill(pid, s)
	}
	if err != nil {
		t.Error(err)
	}
	return pid
}

// restart kills the server and starts it again with its data.
func restart(t *testing.T, pidFile string) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Error(err)
		return
	}
	line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/cmdline")
	if err != nil {
		t.Error(err)
		return
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	pid := signal(t, pidFile, syscall.SIGKILL)
	// it may be a child of ours from an earlier restart: then it is waited for below
	for syscall.Kill(pid, 0) == nil {
		if !pause(t.Context(), 20*time.Millisecond) {
			return
		}
	}
	child := exec.Command(args[0], args[1:]...)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		t.Error(err)
		return
	}
	go func() { _ = child.Wait() }()
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
		t.Error(err)
	}
	for {
		answer, err := http.Get(server(t) + "?query=SELECT%201")
		if err == nil {
			_ = answer.Body.Close()
			return
		}
		if !pause(t.Context(), 50*time.Millisecond) {
			return
		}
	}
}

// TestFrozenServer: the server freezes, and wakes up with requests of clients that have given up.
func TestFrozenServer(t *testing.T) {
	pidFile := process(t)
	c := newCluster(t)
	c.open(nil)
	storm(c, server(t), 3, 90, func(ctx context.Context) {
		for range 3 {
			if !pause(ctx, 500*time.Millisecond) {
				return
			}
			signal(t, pidFile, syscall.SIGSTOP)
			pause(context.WithoutCancel(ctx), 4*time.Second) // longer than a writer waits
			signal(t, pidFile, syscall.SIGCONT)
		}
	})
}

// TestKilledServer: the server is killed in the middle of inserts.
func TestKilledServer(t *testing.T) {
	pidFile := process(t)
	c := newCluster(t)
	c.open(nil)
	storm(c, server(t), 3, 90, func(ctx context.Context) {
		for range 3 {
			if !pause(ctx, 400*time.Millisecond) {
				return
			}
			restart(t, pidFile)
		}
	})
}

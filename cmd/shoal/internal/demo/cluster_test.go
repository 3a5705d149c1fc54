package demo

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// fakeNode runs until it is stopped, and never becomes ready.
type fakeNode struct{ done chan struct{} }

func (n fakeNode) await(ctx context.Context) error {
	<-ctx.Done()
	return errNotReady
}

func (n fakeNode) stop() error { close(n.done); return nil }

func (n fakeNode) kill() error { return n.stop() }

func (n fakeNode) ended() <-chan struct{} { return n.done }

// prompt is a cluster demo that takes commands, on a fake API.
type prompt struct {
	t    *testing.T
	api  *apitest.Server
	tell *io.PipeWriter
	said *bufio.Scanner
	over chan error
}

func newPrompt(ctx context.Context, t *testing.T) *prompt {
	fake := apitest.New(t)
	in, tell := io.Pipe()
	said, say := io.Pipe()
	p := &prompt{t: t, api: fake, tell: tell, said: bufio.NewScanner(said),
		over: make(chan error, 1)}
	d := &demoCluster{command: &Cluster{Data: fake.DataDir(t)},
		t: &terminal.Terminal{In: in, Out: say, Err: say, Columns: 80, Clock: apitest.Impatient{}}}
	for name, role := range map[string]string{firstAPI: "apiserver", "cp1": "controlplane"} {
		d.nodes = append(d.nodes,
			&demoNode{name: name, role: role, running: fakeNode{done: make(chan struct{})},
				config: service.Config{Listen: strings.TrimPrefix(fake.URL, "http://")}})
	}
	go func() {
		p.over <- d.obey(ctx)
		_ = say.Close()
	}()
	t.Cleanup(func() { _ = tell.Close() })
	return p
}

func (p *prompt) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.tell, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads on until a line contains a text.
func (p *prompt) expect(text string) {
	p.t.Helper()
	for p.said.Scan() {
		if strings.Contains(p.said.Text(), text) {
			return
		}
	}
	p.t.Fatalf("it does not say %q", text)
}

// ends reads to the end of the output.
func (p *prompt) ends() {
	p.t.Helper()
	for p.said.Scan() {
		continue
	}
	if err := <-p.over; err != nil {
		p.t.Error(err)
	}
}

// drains sets the fetcher's state.
func (p *prompt) drains(state string) {
	p.api.Mu.Lock()
	defer p.api.Mu.Unlock()
	p.api.Nodes = []string{apitest.NodeAs(state, true, 0, 0)}
}

// TestTheDemoObeysInTheMiddleOfAnOrder: it also waits for the order before it ends.
func TestTheDemoObeysInTheMiddleOfAnOrder(t *testing.T) {
	p := newPrompt(t.Context(), t)
	p.drains("DRAINING")
	p.say("drain f1")
	p.expect("f1: DRAINING")
	p.say("kill cp1")
	p.expect("cp1 is gone")
	p.say("drain f2")
	p.expect("drain f2: ")
	p.say("quit")
	p.expect("Waiting for 'drain f1'")
	p.drains("DRAINED")
	p.expect("f1: DRAINED")
	p.ends()
}

// TestTheDemoEndsInTheMiddleOfAnOrder: an interrupt ends it.
func TestTheDemoEndsInTheMiddleOfAnOrder(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	p := newPrompt(ctx, t)
	p.drains("DRAINING")
	p.say("drain f1")
	p.expect("f1: DRAINING")
	p.say("quit")
	p.expect("Waiting for 'drain f1'")
	interrupt()
	p.ends()
}

func TestThereIsNoLeaderToKill(t *testing.T) {
	p := newPrompt(t.Context(), t)
	p.api.Mu.Lock()
	p.api.Leader = ""
	p.api.Mu.Unlock()
	p.say("kill leader")
	p.expect("nobody leads at the moment")
	p.say("quit")
	p.ends()
}

// TestWhyANodeDoesNotBecomeReady: the reason is its last warning since the start.
func TestWhyANodeDoesNotBecomeReady(t *testing.T) {
	dir := t.TempDir()
	const before, since = "time=t level=WARN msg=earlier\n",
		"time=t level=WARN msg=\"no Kafka\" failures=4\ntime=t level=INFO msg=so\n"
	n := &demoNode{name: "cp1", config: service.Config{Data: dir}, running: fakeNode{},
		logged: int64(len(before))}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ log, want string }{
		{before, "cp1: it does not become ready (its log is in " + dir + ")"},
		{before + since,
			`cp1: it does not become ready, and warns: msg="no Kafka" failures=4 (its log is in ` +
				dir + ")"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "shoal.log"), []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.await(ctx); err == nil || err.Error() != c.want {
			t.Errorf("%v", err)
		}
	}
}

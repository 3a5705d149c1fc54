package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/commands"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
)

// demoWord is a command of the cluster demo.
type demoWord struct {
	name, argument, help string
	do                   func(d *demoCluster, ctx context.Context, argument string) error
}

func demoWords() []demoWord {
	return []demoWord{
		{"nodes", "", "the nodes, who leads, who has which shards", (*demoCluster).list},
		{"run", "[PAGES]", "read pages of the demo web, beside what you say next: all of its " +
			"2,000, unless told otherwise", (*demoCluster).read},
		{"add", "[ROLE]", "start one more node: a fetcher, unless told otherwise",
			(*demoCluster).grow},
		{"drain", "NODE", "have a fetcher hand over its work, beside what you say next",
			(*demoCluster).drain},
		{"undrain", "NODE", "give it work again", (*demoCluster).undrain},
		{"stop", "NODE", "stop a node in order, as an upgrade does", (*demoCluster).stopNode},
		{"kill", "NODE", "end a node as a crash does, or in order where all are in one process; " +
			"'leader' is the control plane's", (*demoCluster).killNode},
		{"start", "NODE", "start a node that was stopped or killed", (*demoCluster).startNode},
	}
}

// obey carries out commands, one per line, until the context ends. At the end of the input it keeps
// serving.
func (d *demoCluster) obey(ctx context.Context) error {
	lines := make(chan string)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	// It may end only with the process: a read of a terminal cannot be cancelled.
	go func() {
		defer close(lines)
		in := bufio.NewScanner(d.t.In)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-reading.Done():
				return
			}
		}
	}()
	d.t.Notef("\nThe cluster takes commands: 'help' lists them, 'quit' or Ctrl-C ends. Logs are "+
		"in %s/NODE/shoal.log.", d.command.Data)
	for {
		select {
		case <-ctx.Done():
			d.finish(ctx)
			return nil
		case line, open := <-lines:
			if !open {
				lines = nil
				continue
			}
			word, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "quit" || word == "exit" {
				d.finish(ctx)
				return nil
			}
			if err := d.tell(ctx, word, strings.TrimSpace(argument)); err != nil &&
				ctx.Err() == nil {
				d.t.Notef("%v", err)
			}
		}
	}
}

func (d *demoCluster) tell(ctx context.Context, word, argument string) error {
	words := demoWords()
	at := slices.IndexFunc(words, func(w demoWord) bool { return w.name == word })
	switch {
	case word == "":
		return nil
	case at >= 0:
		return words[at].do(d, ctx, argument)
	case word != "help":
		return fmt.Errorf("no command %q: 'help' lists them", word)
	}
	for _, w := range words {
		d.t.Notef("  %-8s %-8s %s", w.name, w.argument, w.help)
	}
	d.t.Notef("  %-8s %-8s %s", "quit", "", "once runs and drains have ended stop all nodes and "+
		"end; the data stays")
	d.t.Notef("Lose nodes in the middle of a run: 'run', and then 'kill leader', 'stop " +
		"fetcher1' or 'drain fetcher2'.")
	return nil
}

// order is a command that takes a while, and runs in the background.
type order struct {
	text string
	done chan struct{} // closed once it is done
}

// beside runs an order in the background. Its progress lines may mix with others.
func (d *demoCluster) beside(ctx context.Context, text string,
	do func(t *terminal.Terminal) error) {
	o := order{text: text, done: make(chan struct{})}
	d.orders = append(d.orders, o)
	t := *d.t
	t.Columns = 0
	go func() {
		defer close(o.done)
		if err := do(&t); err != nil && err.Error() != "" && ctx.Err() == nil {
			t.Notef("%s: %v", text, err)
		}
	}()
}

// finish waits for the orders in progress. They end when ctx does.
func (d *demoCluster) finish(ctx context.Context) {
	for _, o := range d.orders {
		select {
		case <-o.done:
			continue
		default:
		}
		if ctx.Err() == nil {
			d.t.Notef("Waiting for '%s'. Ctrl-C ends at once.", o.text)
		}
		<-o.done
	}
}

// connect returns the connection to a running API server.
func (d *demoCluster) connect() (commands.Connection, error) {
	for _, n := range d.nodes {
		if n.role == "apiserver" && n.runs() {
			return commands.Connection{Data: d.command.Data, Server: n.server()}, nil
		}
	}
	return commands.Connection{}, errors.New("no API server runs: start one")
}

// named finds a node that must run, or must not.
func (d *demoCluster) named(name string, runs bool) (*demoNode, error) {
	n := d.node(name)
	switch {
	case n == nil:
		return nil, fmt.Errorf("no node %q: 'nodes' lists them", name)
	case n.runs() && !runs:
		return nil, fmt.Errorf("%s runs", name)
	case !n.runs() && runs:
		return nil, fmt.Errorf("%s does not run: 'start %s' starts it", name, name)
	}
	return n, nil
}

func (d *demoCluster) list(ctx context.Context, _ string) error {
	connect, err := d.connect()
	if err != nil {
		return err
	}
	return (&commands.Nodes{Connection: connect}).Run(ctx, d.t)
}

func (d *demoCluster) read(ctx context.Context, argument string) error {
	pages := DemoPages
	if argument != "" {
		var err error
		if pages, err = strconv.Atoi(argument); err != nil || pages < 1 || pages > DemoPages {
			return fmt.Errorf("run: 1 to %s pages: the demo's web has no more",
				terminal.Count(DemoPages))
		}
	}
	connect, err := d.connect()
	if err != nil {
		return err
	}
	d.beside(ctx, fmt.Sprintf("run %d", pages), func(t *terminal.Terminal) error {
		return (&Command{Data: d.command.Data}).again(ctx, t, d.web, connect, pages)
	})
	return nil
}

func (d *demoCluster) grow(ctx context.Context, role string) error {
	if role == "" {
		role = "fetcher"
	}
	if !slices.Contains(identity.Roles(), role) {
		return fmt.Errorf("add: one of %s", strings.Join(identity.Roles(), ", "))
	}
	number := 1
	for d.node(role+strconv.Itoa(number)) != nil {
		number++
	}
	n, err := d.add(role+strconv.Itoa(number), role)
	if err != nil {
		return err
	}
	return d.startLater(ctx, n, "has joined")
}

func (d *demoCluster) drain(ctx context.Context, name string) error {
	connect, err := d.connect()
	if err != nil {
		return err
	}
	timeout := nodeStarts
	d.beside(ctx, "drain "+name, func(t *terminal.Terminal) error {
		return (&commands.FetcherDrain{Connection: connect, Node: name, Wait: true,
			Timeout: &timeout}).Run(ctx, t)
	})
	return nil
}

func (d *demoCluster) undrain(ctx context.Context, name string) error {
	connect, err := d.connect()
	if err != nil {
		return err
	}
	return (&commands.FetcherDrain{Connection: connect, Node: name, Undo: true}).Run(ctx, d.t)
}

func (d *demoCluster) stopNode(_ context.Context, name string) error {
	n, err := d.named(name, true)
	if err != nil {
		return err
	}
	d.t.Notef("%s hands over and stops.", name)
	return n.running.stop()
}

func (d *demoCluster) killNode(ctx context.Context, name string) error {
	if name == "leader" {
		connect, err := d.connect()
		if err != nil {
			return err
		}
		client, err := connect.AdminClient(d.t)
		if err != nil {
			return err
		}
		defer client.Close()
		status, err := client.Status(ctx)
		if err != nil {
			return err
		}
		if name = status.Value.Leader; name == "" {
			return errors.New("nobody leads at the moment: the control plane has no majority, " +
				"or elects; 'nodes' shows who does")
		}
	}
	n, err := d.named(name, true)
	if err != nil {
		return err
	}
	if err := n.running.kill(); err != nil {
		return err
	}
	d.t.Notef("%s is gone.", name)
	return nil
}

func (d *demoCluster) startNode(ctx context.Context, name string) error {
	n, err := d.named(name, false)
	if err != nil {
		return err
	}
	return d.startLater(ctx, n, "runs")
}

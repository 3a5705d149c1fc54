package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
)

const (
	topEvery = time.Second
	// topWithin bounds one poll of the service, which takes some 4 s without a leader.
	topWithin = 5 * time.Second
)

// Top is 'shoal top', the cluster's nodes and pace, redrawn each second.
type Top struct {
	Connection
	Once bool `help:"Print one frame, after observing for a second, and exit."`
}

// Help returns the command's help text.
func (*Top) Help() string {
	return `It shows the cluster, redrawn every second: the leader, the pace of pages and errors, the units that are out, and the lag of
each topic. For every node it shows its state, its role in Raft, how many entries it lags behind (- if it did not report),
its shards (+ those being moved), its tasks, its pace and the age of its last heartbeat. q or Ctrl-C ends it.

It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.

Examples:

  shoal top
  shoal top --once | grep failed`
}

// Run watches until somebody ends it.
func (c *Top) Run(ctx context.Context, t *terminal.Terminal) error {
	w := &watch{connect: func(ctx context.Context) (*api.Client, error) {
		client, err := c.AdminClient(t)
		if err == nil {
			client.Impatient()
		}
		return client, err
	}, now: t.Clock.Now}
	defer w.close()
	// If the first poll fails, the error is returned. A service that goes away later may come back.
	if w.look(ctx); w.problem != nil && w.at.IsZero() {
		return w.problem
	}
	if c.Once {
		return c.once(ctx, t, w)
	}
	s, err := openScreen(t)
	if err != nil {
		return err
	}
	err = w.run(ctx, s, t.Clock.After)
	return errors.Join(err, s.close())
}

// once prints a frame. Rates need a second poll, which is skipped without a leader.
func (c *Top) once(ctx context.Context, t *terminal.Terminal, w *watch) error {
	if w.status.Leader != "" {
		if !clock.Pause(ctx, t.Clock, topEvery) {
			return ctx.Err()
		}
		w.look(ctx)
	}
	if w.problem != nil {
		return w.problem
	}
	for _, line := range w.frame(terminal.UsualWidth, len(w.nodes)+topLines) {
		if _, err := fmt.Fprintln(t.Out, line.text); err != nil {
			return err
		}
	}
	return nil
}

// watch is what was seen of the service.
type watch struct {
	connect func(ctx context.Context) (*api.Client, error)
	now     func() time.Time
	client  *api.Client // nil: none, or the service does not answer

	status, before api.Status
	at, atBefore   time.Time // when status and before were seen; zero: never
	nodes          []api.Node
	problem        error // why the newest poll is incomplete
}

// look polls the service. What does not answer keeps its last value.
func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, topWithin)
	defer cancel()
	if w.problem = w.ask(ctx); w.problem != nil {
		w.close() // the next poll gets a new address and token
	}
}

func (w *watch) ask(ctx context.Context) error {
	if w.client == nil {
		client, err := w.connect(ctx)
		if err != nil {
			return err
		}
		w.client = client
	}
	status, err := w.client.Status(ctx)
	if err != nil {
		return err
	}
	w.before, w.atBefore = w.status, w.at
	w.status, w.at = status.Value, w.now()
	nodes, err := w.client.Nodes(ctx)
	if err != nil {
		return err
	}
	w.nodes = nodes.Value
	return nil
}

func (w *watch) close() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// run draws frames until ctx ends or a key ends it.
func (w *watch) run(ctx context.Context, s *screen,
	after func(time.Duration) <-chan time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		s.awaitEnd(ctx)
	}()
	defer func() { <-ended }()
	defer cancel()
	for ctx.Err() == nil {
		w.look(ctx)
		if ctx.Err() != nil {
			break
		}
		width, height := s.size()
		if err := s.draw(w.frame(width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-after(topEvery):
		}
	}
	return nil
}

// topLines is how many lines of a frame are not about a node.
const topLines = 6

// line is a line of a frame. Its text has no control characters.
type line struct {
	text  string
	style style
}

// frame renders the state in at most height lines of at most width characters.
func (w *watch) frame(width, height int) []line {
	lines := append(w.summary(), line{text: nodeHeader, style: bold})
	room := max(height-len(lines), 1)
	for i := range w.nodes {
		if i == room-1 && len(w.nodes) > room {
			lines = append(lines, line{text: fmt.Sprintf("… and %d more nodes", len(w.nodes)-i)})
			break
		}
		lines = append(lines, nodeLine(&w.nodes[i], unheard(w.status.Leader != "")))
	}
	lines = lines[:min(len(lines), max(height, 1))]
	for i := range lines {
		lines[i].text = strings.TrimRight(terminal.Cut(terminal.Printable(lines[i].text), width),
			" ")
	}
	return lines
}

// summary returns the lines about the whole cluster.
func (w *watch) summary() []line {
	s := &w.status
	title := line{text: fmt.Sprintf("shoal top   %s leads in term %d   %d of %d shards owned",
		s.Leader, s.Term, s.Owned,
		s.Shards), style: bold}
	switch {
	case w.at.IsZero():
		title.text = "shoal top   nothing was seen yet"
	case s.Leader == "":
		title.text, title.style = fmt.Sprintf("shoal top   NO LEADER in term %d", s.Term), red
	case s.Owned < s.Shards:
		title.style = red
	}
	title.text += "   " + w.now().UTC().Format("15:04:05") + " UTC"
	pages, errors, commands := w.rates()
	lag := "lag"
	for _, topic := range []string{"tasks", "pages", "receipts"} {
		records := "?"
		if known, told := s.Lag[topic]; told {
			records = terminal.Count(known)
		}
		lag += "   " + topic + " " + records
	}
	problem := line{}
	if w.problem != nil {
		problem = line{text: strings.Join(strings.Fields(w.problem.Error()), " "), style: red}
	}
	return []line{title,
		{text: fmt.Sprintf("pages/s %s   errors/s %s   out %s   open runs %s   commands/s %s",
			pages, errors, terminal.Count(s.Out),
			terminal.Count(int64(s.OpenJobs)), commands)},
		{text: lag}, problem}
}

// rates are the rates between the last two polls, "-" when unknown. They are unknown at first, and
// after another node has answered, or the same one after a restart.
func (w *watch) rates() (pages, errors, commands string) {
	seconds := w.at.Sub(w.atBefore).Seconds()
	known := !w.atBefore.IsZero() && seconds > 0 && w.before.Node == w.status.Node &&
		w.before.Pages <= w.status.Pages &&
		w.before.Commands <= w.status.Commands
	if !known {
		return "-", "-", "-"
	}
	rate := func(now, before uint64) string {
		return fmt.Sprintf("%.1f",
			float64(now-before)/seconds)
	}
	return rate(w.status.Pages, w.before.Pages), rate(w.status.PageErrors, w.before.PageErrors),
		rate(w.status.Commands, w.before.Commands)
}

const nodeFormat = "%-14s %-8s %-8s %5s %-12s %6s %6s %7s %5s"

var nodeHeader = fmt.Sprintf(nodeFormat, "NODE", "STATE", "RAFT", "LAG", "ROLES", "SHARDS", "OPEN",
	"PAGES/S", "HEARD")

// lateHeartbeat is the age from which a heartbeat is shown in red: a lease by default.
const lateHeartbeat = 10 * time.Second

// unheard stands for a missing heartbeat: it never came, or there is no leader, which alone hears
// heartbeats.
func unheard(led bool) string {
	if led {
		return "never"
	}
	return "?"
}

// lagOf shows how far a node lags, "-" if it did not report.
func lagOf(n *api.Node, show func(uint64) string) string {
	if n.Lag == nil {
		return "-"
	}
	return show(*n.Lag)
}

// nodeLine shows a node. A node without a fetcher has nothing behind its roles.
func nodeLine(n *api.Node, unheard string) line {
	l := line{}
	shards, open, pages, heard := "", "", "", ""
	if n.Capacity > 0 {
		shards, open, pages = fmt.Sprint(n.Shards), shortCount(uint64(max(n.Open, 0))),
			fmt.Sprintf("%.1f", n.PagesPerSecond)
		if n.Moving > 0 {
			shards += fmt.Sprintf("+%d", n.Moving)
		}
		heard = unheard
	}
	if n.LeaseAgeMillis != nil {
		age := time.Duration(*n.LeaseAgeMillis) * time.Millisecond
		heard = shortly(age)
		if age > lateHeartbeat && n.Shards > 0 {
			l.style = red
		}
	}
	switch {
	case n.State == "FAILED":
		l.style = red
	case n.State == "DRAINING" || n.State == "DRAINED":
		l.style = yellow
	case n.Suffrage == "LEADER" && l.style == plain:
		l.style = bold
	}
	l.text = fmt.Sprintf(nodeFormat, terminal.Cut(terminal.Printable(n.Name), 14),
		strings.ToLower(n.State), strings.ToLower(n.Suffrage),
		lagOf(n, shortCount), terminal.Cut(shortRoles(n.Roles), 12), shards, open, pages, heard)
	return l
}

// shortRoles abbreviates roles, since not all fit.
func shortRoles(roles []string) string {
	if len(roles) == len(identity.Roles()) {
		return "all"
	}
	short := map[string]string{"controlplane": "ctl", "fetcher": "fetch", "ingest": "ingest",
		"billing": "bill", "apiserver": "api"}
	names := make([]string, len(roles))
	for i, role := range roles {
		if names[i] = short[role]; names[i] == "" {
			names[i] = role
		}
	}
	return strings.Join(names, ",")
}

// shortCount formats a count in at most five characters.
func shortCount(n uint64) string {
	const units = " kMGTPE"
	unit := 0
	for ; n >= 10_000; n /= 1000 {
		unit++
	}
	return strings.TrimSpace(fmt.Sprint(n) + units[unit:unit+1])
}

// shortly formats a duration in at most five characters.
func shortly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/synthweb"
)

// alertsFaster is how many times shorter than shipped the windows and patience of the rules are,
// and how many times more frequent the scrapes. Thresholds are as shipped.
const alertsFaster = 6

// watchedLease is longer than a fetcher's silence that raises an alert.
const watchedLease = 25 * time.Second

// alertsPatience is how long an alert may take: windows are then at most 100 s, and patience at
// most 30 s.
const alertsPatience = 4 * time.Minute

// roomyDisk is a disk of which this test does not fill a tenth.
const roomyDisk = 4 << 30

// trouble is a problem that alerts must report to an operator.
type trouble struct {
	name   string
	alerts []string
	strike func(w *watched)
	heal   func(w *watched)
}

// allTroubles are the problems that can be caused within minutes. Only promtool tests the other
// rules (deploy/monitoring).
func allTroubles() []trouble {
	onService := func(service string, alerts ...string) trouble {
		return trouble{name: "without " + service, alerts: alerts,
			strike: func(w *watched) { w.must(w.Services().Kill(w.ctx, service)) },
			heal:   func(w *watched) { w.must(w.Services().Start(w.ctx, service)) }}
	}
	paused := func(name string, which func(w *watched) []*cluster.Node, alerts ...string) trouble {
		return trouble{name: name, alerts: alerts,
			strike: func(w *watched) {
				w.struck = which(w)
				for _, n := range w.struck {
					w.must(n.Pause())
				}
			},
			heal: func(w *watched) {
				for _, n := range w.struck {
					w.must(n.Resume())
				}
			}}
	}
	with := func(role string) func(w *watched) []*cluster.Node {
		return func(w *watched) []*cluster.Node { return w.With(role) }
	}
	return []trouble{
		onService(cluster.Redis, "ShoalLimitsLocal"),
		{name: "records that nobody can read", alerts: []string{"ShoalUndecodableRecords"},
			strike: func(w *watched) { w.must(w.Poison(w.ctx, []byte("nobody can read this"))) },
			heal:   func(*watched) {}},
		paused("a fetcher that says nothing",
			func(w *watched) []*cluster.Node { return w.With(cluster.Fetcher)[:1] },
			"ShoalNodeDown", "ShoalFetcherSilent"),
		{name: "a fetcher that was away", alerts: []string{"ShoalLeasesLapse"},
			strike: func(w *watched) {
				n := w.With(cluster.Fetcher)[1]
				w.must(n.Pause())
				<-time.After(watchedLease)
				w.must(n.Resume())
			},
			heal: func(*watched) {}},
		paused("no billing", with(cluster.Billing), "ShoalRoleMissing", "ShoalPipelineStalled"),
		onService(cluster.ClickHouse, "ShoalRowStoreErrors", "ShoalIngestStalled"),
		onService(cluster.Kafka, "ShoalIngestStalled", "ShoalPipelineStalled", "ShoalLogErrors"),
		{name: "a node that is cut off", alerts: []string{"ShoalNodeCutOff", "ShoalSettleStalled"},
			strike: func(w *watched) { w.cut(w.With(cluster.Billing)[0], w.Cut) },
			heal:   func(w *watched) { w.cut(w.With(cluster.Billing)[0], w.Heal) }},
		{name: "a full disk", alerts: []string{"ShoalDiskFull", "ShoalDiskNearlyFull"},
			strike: func(w *watched) { w.must(w.With(cluster.Billing)[0].FillDisk()) },
			heal: func(w *watched) {
				n := w.With(cluster.Billing)[0]
				w.must(n.FreeDisk())
				if !n.Running() {
					w.must(n.Start())
				}
			}},
		{name: "slow disks", alerts: []string{"ShoalRaftDiskSlow"},
			strike: func(w *watched) { w.slowWrites(700 * time.Millisecond) },
			heal:   func(w *watched) { w.slowWrites(0) }},
		{name: "no fetcher", alerts: []string{"ShoalRoleMissing", "ShoalMarkersLate"},
			strike: func(w *watched) {
				for _, n := range w.With(cluster.Fetcher) {
					n.Kill()
				}
			},
			heal: func(w *watched) {
				for _, n := range w.With(cluster.Fetcher) {
					w.must(n.Start())
				}
			}},
		paused("no majority", func(w *watched) []*cluster.Node {
			leader := suite.Must(w.Leader(w.ctx))(w.t)
			return slices.DeleteFunc(w.With(cluster.ControlPlane),
				func(n *cluster.Node) bool { return n == leader })
		}, "ShoalNoLeader", "ShoalAPIErrors"),
	}
}

// TestAlerts lets a real Prometheus watch a working cluster with the shipped alert rules. While
// nothing is wrong no alert fires, and each problem fires its alerts.
func TestAlerts(t *testing.T) {
	if !*troubles {
		t.Skip("by -troubles (make watched)")
	}
	w := newWatched(t)
	w.quiet()
	for _, trouble := range allTroubles() {
		ok := t.Run(trouble.name, func(t *testing.T) {
			w.t, w.ctx = t, suite.Within(t, alertsPatience)
			w.flows()
			defer func() { // other suites use these services next
				w.ctx = suite.Within(t, settleTime)
				trouble.heal(w)
				w.must(w.Settled(w.ctx))
			}()
			trouble.strike(w)
			w.fire(trouble.alerts)
		})
		if !ok {
			return
		}
	}
}

// watched is a working cluster and the Prometheus that watches it.
type watched struct {
	*cluster.Cluster
	t          *testing.T
	ctx        context.Context
	prometheus http.Client // only reaches its address
	struck     []*cluster.Node
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	network := newNetwork(t)
	web := newWeb(t, network, synthweb.Config{Hosts: 40, PagesPerHost: 2000,
		PageBytes: []int{3000}})
	// Own disks: how full the machine's disk is must not affect the cluster.
	nodes := cluster.Layout(3, 2, 1, 1, 1)
	for i := range nodes {
		nodes[i].Disk = roomyDisk
		if slices.Contains(nodes[i].Roles, cluster.Billing) {
			nodes[i].Disk = diskBytes // this one gets filled
		}
	}
	// Rate limits are what Redis is used for.
	c := newCluster(t, network, nodes,
		[]string{"--lease", watchedLease.String(), "--host-rate", "1", "--no-rate-limits=false"},
		web)
	start(t, c)
	w := &watched{Cluster: c, t: t, ctx: suite.Within(t, settleTime)}
	w.watch(network)

	// A run that outlasts the test: 40 pages a second. Calls are made beside it, whether or not
	// they succeed.
	admin := clientOf(c, suite.Must(mint(w.ctx, c, "--admin"))(t))
	who := clientOf(c, suite.Must(mint(w.ctx, c, "--customer", "watched"))(t))
	ref := suite.Must(who.Whoami(w.ctx))(t)
	w.must(admin.Adjust(w.ctx, ref, suite.Plenty))
	suite.ProductOrder(who, slices.Collect(web.URLs(80_000))).Launch(t)
	calls, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for calls.Err() == nil {
			call, done := context.WithTimeout(calls, 2*time.Second)
			_ = admin.Adjust(call, ref, 1) // alerts report failing calls
			done()
			select {
			case <-calls.Done():
			case <-time.After(lookEvery):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// cut applies how to both directions between a node and all others.
func (w *watched) cut(n *cluster.Node, how func(from, to []*cluster.Node) error) {
	w.t.Helper()
	one := []*cluster.Node{n}
	w.must(how(one, w.Others(n)))
	w.must(how(w.Others(n), one))
}

// slowWrites makes every write of every voter's Raft take longer.
func (w *watched) slowWrites(delay time.Duration) {
	w.t.Helper()
	for _, voter := range w.With(cluster.ControlPlane) {
		w.must(voter.SlowWrites(delay))
	}
}

// watch starts Prometheus where it reaches the nodes.
func (w *watched) watch(network *netns.Network) {
	w.t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		w.t.Fatal("the suite needs Prometheus (Debian: package prometheus): ", err)
	}
	dir := w.t.TempDir()
	rules := suite.Must(os.ReadFile("../../deploy/monitoring/alerts.yml"))(w.t)
	w.must(os.WriteFile(filepath.Join(dir, "alerts.yml"), faster(rules), 0o600))
	var targets []string
	for _, n := range w.Nodes() {
		targets = append(targets, strconv.Quote(n.Ops()))
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, "+
		"evaluation_interval: 1s}\n"+
		"rule_files: [alerts.yml]\nscrape_configs:\n- job_name: shoal\n  static_configs:\n  - "+
		"targets: [%s]\n",
		strings.Join(targets, ", "))
	w.must(os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	at := netip.AddrPortFrom(network.Router().Addr(), 9090).String()
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at,
		"--log.level=warn")
	said := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = said, said
	w.must(network.Router().Start(cmd))
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if w.t.Failed() {
			w.t.Log("Prometheus said:\n" + said.String())
		}
	})
	w.prometheus.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return network.Router().DialContext(ctx, "tcp", at)
		}}
}

var ruleTime = regexp.MustCompile(`(for: |\[)(\d+)(s|m)`)

// faster shortens windows and patience.
func faster(rules []byte) []byte {
	return ruleTime.ReplaceAllFunc(rules, func(found []byte) []byte {
		parts := ruleTime.FindSubmatch(found)
		seconds, _ := strconv.Atoi(string(parts[2])) // digits
		if string(parts[3]) == "m" {
			seconds *= 60
		}
		return fmt.Appendf(nil, "%s%ds", parts[1], max(seconds/alertsFaster, 2))
	})
}

// ask queries Prometheus.
func (w *watched) ask(path string, into any) error {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet,
		"http://prometheus/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := w.prometheus.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", body, err)
	}
	return nil
}

// flows waits until pages are processed: an alert about a backlog needs one.
func (w *watched) flows() {
	w.t.Helper()
	flowing := "query?query=" +
		url.QueryEscape("sum(rate(shoal_controlplane_settled_pages_total[5s])) > 10")
	for {
		var answer struct {
			Data struct {
				Result []any `json:"result"`
			} `json:"data"`
		}
		err := w.ask(flowing, &answer)
		if err == nil && len(answer.Data.Result) > 0 {
			return
		}
		select {
		case <-w.ctx.Done():
			w.t.Fatal("no pages go round: ", err)
		case <-time.After(lookEvery):
		}
	}
}

// firing returns the names of the firing alerts.
func (w *watched) firing() ([]string, error) {
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string            `json:"state"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		} `json:"data"`
	}
	if err := w.ask("alerts", &answer); err != nil {
		return nil, err
	}
	names := []string{}
	for _, alert := range answer.Data.Alerts {
		if alert.State == "firing" {
			names = append(names, alert.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// until polls the firing alerts until ok.
func (w *watched) until(what string, ok func(fires []string) bool) {
	w.t.Helper()
	var fires []string
	var err error
	for {
		if fires, err = w.firing(); err == nil && ok(fires) {
			w.t.Log(fires)
			return
		}
		select {
		case <-w.ctx.Done():
			w.t.Fatalf("never: %s; %v fire, %v", what, fires, err)
		case <-time.After(lookEvery):
		}
	}
}

// fire waits until each of the alerts has fired, at any time.
func (w *watched) fire(alerts []string) {
	w.t.Helper()
	missing := slices.Clone(alerts)
	w.until(fmt.Sprint(alerts, " fire"), func(fires []string) bool {
		missing = slices.DeleteFunc(missing,
			func(a string) bool { return slices.Contains(fires, a) })
		return len(missing) == 0
	})
}

// calm is how long nothing may fire: longer than any patience.
const calm = 40 * time.Second

// quiet waits until nothing has fired for calm. At first Prometheus knows no node.
func (w *watched) quiet() {
	w.t.Helper()
	since := time.Now()
	w.until("nothing fires for long", func(fires []string) bool {
		if len(fires) > 0 {
			since = time.Now()
		}
		return time.Since(since) > calm
	})
}

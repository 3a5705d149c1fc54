//go:build linux

package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// A run as fast as the machine allows: pages of ordinary size, each with one row of five fields.
const (
	capacityPages = 60_000
	capacityBytes = 28_000
	capacityHosts = 1_000
)

// TestCapacity measures each process's processor time per page, including the services.
// deploy/CAPACITY.md derives from it how many machines a load needs. The web is on the same
// machine; its use is not counted.
func TestCapacity(t *testing.T) {
	if *servicePID == "" {
		t.Skip("by -service-pids (make capacity)")
	}
	network := newNetwork(t)
	web := newWeb(t, network, synthweb.Config{Hosts: capacityHosts,
		PagesPerHost: capacityPages / capacityHosts,
		PageBytes:    []int{capacityBytes}})
	c := newCluster(t, network, cluster.Layout(1, 1, 1, 1, 1),
		[]string{"--host-rate", "1000", "--max-host-rate", "1000",
			"--host-connections", "4", "--max-host-connections", "4", "--ops-profiles"}, web)
	start(t, c)
	s := &scaleRun{t: t, c: c, web: web, ctx: suite.Within(t, 2*aboutGoal)}
	s.who = clientOf(c, suite.Must(mint(s.ctx, c, "--customer", "capacity"))(t))
	admin := clientOf(c, suite.Must(mint(s.ctx, c, "--admin"))(t))
	if err := admin.Adjust(s.ctx, suite.Must(s.who.Whoami(s.ctx))(t), suite.Plenty); err != nil {
		t.Fatal(err)
	}
	s.o = suite.ProductOrder(s.who, slices.Collect(web.URLs(capacityPages)))
	before, logged := everybody(t, c), segments(t)
	begin := time.Now()
	s.launch()
	s.finish()
	took := time.Since(begin)
	after := everybody(t, c)
	var report strings.Builder
	fmt.Fprintf(&report, "%d pages of %d bytes in %v, %.0f pages/s\n\n| process | CPU a page, "+
		"µs | peak memory, MB |\n|---|---|---|\n",
		capacityPages, capacityBytes, took.Round(time.Second), capacityPages/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(&report, "| %s | %.1f | %d |\n", name,
			float64((after[name].CPU-before[name].CPU).Microseconds())/capacityPages,
			after[name].PeakBytes>>20)
	}
	fmt.Fprintf(&report, "\nKafka's segments grew by %.0f bytes a page, all replicas together\n",
		float64(segments(t)-logged)/capacityPages)
	t.Log("\n" + report.String())
}

// everybody returns the resource use of nodes and services.
func everybody(t *testing.T, c *cluster.Cluster) map[string]process.Usage {
	t.Helper()
	all := usage(t, c)
	for _, file := range suite.Must(filepath.Glob(filepath.Join(*servicePID, "*")))(t) {
		content := suite.Must(os.ReadFile(file))(t)
		pid := suite.Must(strconv.Atoi(strings.TrimSpace(string(content))))(t)
		all[filepath.Base(file)] = suite.Must(process.UsageOf(pid))(t)
	}
	return all
}

// segment matches a file of a topic's partition, except Kafka's own topics.
var segment = regexp.MustCompile(`/[^/_][^/]*-\d+/\d{20}\.log$`)

// segments returns the total size of the topic files that the services have open; Kafka keeps all
// its files open.
func segments(t *testing.T) (size int64) {
	t.Helper()
	for _, file := range suite.Must(filepath.Glob(filepath.Join(*servicePID, "*")))(t) {
		pid := strings.TrimSpace(string(suite.Must(os.ReadFile(file))(t)))
		for _, open := range suite.Must(filepath.Glob("/proc/" + pid + "/fd/*"))(t) {
			if path, err := os.Readlink(open); err != nil || !segment.MatchString(path) {
				continue // not a file, or closed in the meantime
			}
			if info, err := os.Stat(open); err == nil {
				size += info.Size()
			}
		}
	}
	return size
}

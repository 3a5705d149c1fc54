package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// The figures of the specification.
const (
	acceptedWithin = 30 * time.Second
	mostMemory     = 400 << 20
	mostRecord     = 1 << 20 // bytes of a run's replicated record
	besideWithin   = 3 * time.Second
	pagesPerCall   = 500      // per Raft command, in bulk
	mostIdleMemory = 48 << 20 // without the program's mapped file, which the system can reclaim
	mostIdleShare  = 0.01     // of a core
	slowShare      = 1.10     // of the time without slow hosts
)

func onlyAtScale(t *testing.T) {
	t.Helper()
	if !*scale {
		t.Skip("by -scale (make scale)")
	}
}

// TestScale runs a million addresses, and beside them a small run of another customer.
func TestScale(t *testing.T) {
	onlyAtScale(t)
	web := newWeb(t, synthweb.Config{Hosts: 1000, PagesPerHost: 1000, PageBytes: []int{3000}})
	beside := newWeb(t, synthweb.Config{Suffix: "beside", Hosts: 20, PagesPerHost: 1,
		PageBytes: []int{3000}})
	// Snapshots are frequent, since they show the size of the run's record.
	s := newService(t, web, append(suite.Fast(), "--egress-origin",
		beside.Pattern()+"="+beside.Addr(),
		"--raft-snapshot-entries", "50")...)
	s.Fill(s.Client, suite.Plenty)
	other := s.Customer("other")
	s.Fill(other, suite.Plenty)
	ctx := suite.Within(t, time.Hour)
	links := *manyLinks
	before := suite.Must(s.Admin().Status(ctx))(t)

	begin := time.Now()
	o := suite.ProductOrder(s.Client, nil)
	run := suite.Must(s.RunList(ctx, suite.Must(o.Query(ctx))(t), lines(web, links)))(t)
	accepted := time.Since(begin)
	t.Logf("%d addresses accepted in %v", run.LinksQueued, accepted.Round(time.Millisecond))
	if run.LinksQueued != links || accepted > acceptedWithin {
		t.Errorf("accepted %d in %v, want %d in %v", run.LinksQueued, accepted, links,
			acceptedWithin)
	}

	record := int64(0)
	for part := range int64(3) {
		suite.Begun(t, s.Client, run, int64(links)/10*(1+2*part))
		record = max(record, latestSnapshot(t, s.data))
		small := suite.ProductOrder(other, slices.Collect(beside.URLs(20)))
		start := time.Now()
		job, _, err := other.Finished(ctx, small.Launch(t))
		took := time.Since(start)
		t.Logf("a run of 20 pages beside it: %v", took.Round(time.Millisecond))
		if err != nil || job.SuccessLinks != 20 || took > besideWithin {
			t.Errorf("the small run took %v, at most %v: %+v, %v", took, besideWithin, job, err)
		}
	}

	job, entry, err := s.Finished(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	after := suite.Must(s.Admin().Status(ctx))(t)
	usage := suite.Must(s.p.Usage())(t)
	commands := after.Commands - before.Commands
	t.Logf("%d pages in %v: %.0f pages/s, %.0f pages per CPU-second", job.TotalRequests,
		took.Round(time.Second),
		float64(job.TotalRequests)/took.Seconds(), float64(job.TotalRequests)/usage.CPU.Seconds())
	t.Logf("memory %d MB at most; %d Raft commands, one for %d pages", usage.PeakBytes>>20,
		commands,
		uint64(job.TotalRequests)/commands)
	if usage.PeakBytes > mostMemory {
		t.Errorf("the process had %d MB, at most %d", usage.PeakBytes>>20, mostMemory>>20)
	}
	if commands > uint64(links)/pagesPerCall {
		t.Errorf("%d Raft commands, at most %d", commands, links/pagesPerCall)
	}
	if job.SuccessLinks != int64(links) || job.ItemsQuantity != int64(links) ||
		job.ErrorLinks != 0 ||
		entry.AmountMicros != -int64(links-suite.FreeGrant)*suite.PlainPrice {
		t.Errorf("%+v, charged %d", job, entry.AmountMicros)
	}
	t.Logf("a snapshot in the middle of the run has %d KB", record>>10)
	if record == 0 || record > mostRecord {
		t.Errorf("a snapshot with the run has %d bytes, at most %d", record, mostRecord)
	}
	suite.CheckWallet(t, s.Client)
	asked := suite.Must(web.Recount())(t)
	if len(asked.URLs) != links {
		t.Errorf("%d addresses were asked for", len(asked.URLs))
	}
	for address, count := range asked.URLs {
		if count.Requests != 1 {
			t.Fatalf("%s was asked for %d times", address, count.Requests)
		}
	}
}

// latestSnapshot returns the size of the largest Raft snapshot on disk: the records of all runs and
// customers.
func latestSnapshot(t *testing.T, data string) (largest int64) {
	t.Helper()
	files := suite.Must(filepath.Glob(filepath.Join(data, "raft", "snapshots", "*",
		"state.bin")))(t)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil { // a newer one may have replaced it
			largest = max(largest, info.Size())
		}
	}
	return largest
}

// TestSlowHosts compares the time for 190 hosts with and without ten slow ones beside them.
func TestSlowHosts(t *testing.T) {
	onlyAtScale(t)
	const hosts, slow, pages = 200, 10, 60
	took := func(slowLatency time.Duration) time.Duration {
		web := newWeb(t, synthweb.Config{Seed: 9, Hosts: hosts, PagesPerHost: pages,
			SlowHosts:   slow,
			SlowLatency: max(slowLatency, time.Millisecond), PageBytes: []int{3000}})
		s := newService(t, web, "--host-rate", "5", "--host-connections", "2", "--no-rate-limits")
		s.Fill(s.Client, suite.Plenty)
		isSlow := map[string]bool{}
		var urls []string
		perSlow := map[string]int{}
		for address := range web.URLs(hosts * pages) {
			truth := suite.Must(web.Truth(address))(t)
			host := strings.Split(address, "/")[2]
			isSlow[host] = truth.Slow
			if truth.Slow {
				if perSlow[host]++; slowLatency == 0 || perSlow[host] > 6 {
					continue // enough to be in the way all the time
				}
			}
			urls = append(urls, address)
		}
		o := suite.ProductOrder(s.Client, urls)
		begin := time.Now()
		run := o.Launch(t)
		if job, _, err := s.Finished(suite.Within(t, suite.Patience), run); err != nil ||
			int(job.SuccessLinks) != len(urls) {
			t.Fatalf("%+v, %v", job, err)
		}
		var end time.Time
		for r := range web.Requests() {
			if !isSlow[r.Host] && r.End.After(end) {
				end = r.End
			}
		}
		s.Down(t)
		return end.Sub(begin)
	}
	without := took(0)
	with := took(10 * time.Second)
	t.Logf("the quick hosts took %v without slow ones and %v with them",
		without.Round(time.Millisecond),
		with.Round(time.Millisecond))
	if float64(with) > slowShare*float64(without) {
		t.Errorf("slow hosts hold the others up: %v instead of %v", with, without)
	}
}

// TestIdle checks a process that has nothing to do.
func TestIdle(t *testing.T) {
	onlyAtScale(t)
	s := newService(t, newWeb(t, synthweb.Config{}), suite.Fast()...)
	const span = 20 * time.Second
	before := suite.Must(s.p.Usage())(t)
	<-time.After(span) // the measurement is of time in which nothing happens
	after := suite.Must(s.p.Usage())(t)
	share := (after.CPU - before.CPU).Seconds() / span.Seconds()
	t.Logf("idle: %d MB, %d of its own, %.2f%% of a core", after.Bytes>>20, after.OwnBytes>>20,
		100*share)
	if after.OwnBytes > mostIdleMemory || share > mostIdleShare {
		t.Errorf("at most %d MB of its own and %.0f%%", mostIdleMemory>>20, 100*mostIdleShare)
	}
}

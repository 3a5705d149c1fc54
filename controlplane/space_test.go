package controlplane

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// spaceFloor is the tests' floor, in bytes.
const spaceFloor = 8_000

// level is a disk whose free space a test sets.
type level struct{ atomic.Uint64 }

func (g *level) disk() *telemetry.Disk {
	return &telemetry.Disk{Dir: "of a test", Floor: telemetry.NewFloor(spaceFloor),
		Free: func(string) (uint64, bool) { return g.Load(), true }}
}

func newLevel() *level {
	g := &level{}
	g.Store(2 * spaceFloor)
	return g
}

// refusedForSpace tries to launch a run.
func refusedForSpace(t *testing.T, c client.Client, source ids.Source, customer string,
	scraper ids.ID) bool {
	t.Helper()
	_, err := client.Do(patient(t), c, client.LaunchRun{Job: source.New(), Entry: source.New(),
		Customer: customer, Scraper: scraper, List: source.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain)}, nil)
	if err != nil && fault.CodeOf(err) != fault.OutOfSpace {
		t.Fatalf("a launch: %v", err)
	}
	return err != nil
}

// A run waits while its node's or its row store's disk is below the floor. Launches are refused
// with a reason. Afterwards everything continues on its own: each page is charged once.
func TestRunWaitsForSpace(t *testing.T) {
	t.Parallel()
	for _, whose := range []string{"the node's", "the row store's"} {
		t.Run(whose, func(t *testing.T) {
			config, own := testConfig(t, t.TempDir()), newLevel()
			store := config.Store.(*lists)
			config.Disk, config.RowsFloor = own.disk(), telemetry.NewFloor(spaceFloor)
			config.MarkerEvery = 50 * time.Millisecond
			store.free.Store(2 * spaceFloor)
			left := &store.free
			if whose == "the node's" {
				left = &own.Uint64
			}
			r := serve(t, config)
			customer, scraper := prepare(t, r, config)
			left.Store(spaceFloor) // exactly at the floor there is room
			job := launch(t, r, config, customer, scraper, 300)
			until(t, "units that are out", func() bool {
				status, err := r.Status(patient(t))
				return err == nil && status.Out > 0
			})
			left.Store(spaceFloor - 1)
			until(t, "disks that are short", func() bool { return r.View().IsShort() })
			out := r.View().Job(job)
			if !refusedForSpace(t, r, config.IDs, customer, scraper) {
				t.Error("a run was launched")
			}
			fetchAll(t, r, config, 0)
			held(t, r, job, out.Pages)
			left.Store(spaceFloor + spaceFloor/8 - 1) // not enough yet
			held(t, r, job, out.Pages)
			left.Store(spaceFloor + spaceFloor/8)
			ended := finished(t, r, job)
			if ended.State != model.Completed || ended.Delivered != 300 ||
				ended.Charged != 295*150 {
				t.Errorf("it ended %s with %d pages, charged %d", ended.State, ended.Delivered,
					ended.Charged)
			}
			if refusedForSpace(t, r, config.IDs, customer, scraper) {
				t.Error("no run is launched")
			}
		})
	}
}

// held checks that a run stands still for two looks at the disks.
func held(t *testing.T, r *running, job ids.ID, pages uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		now, changed := r.View().WatchJob(job)
		if now.Pages != pages {
			t.Fatalf("%d pages came, after %d", now.Pages, pages)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// One voter without room does not stop the cluster. The leader does, and so do voters without which
// there is no majority. Every node reports it, and every node goes on.
func TestClusterWaitsForSpaceOfVoters(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	gauges := make([]*level, len(c.configs))
	for n := range c.configs {
		gauges[n] = newLevel()
		c.kill(n)
		c.configs[n].Disk = gauges[n].disk()
		c.start(n)
		c.ready(n)
	}
	leads := c.untilLed()
	var followers []int
	for n := range 3 {
		if n != leads {
			followers = append(followers, n)
		}
	}
	all := func(want bool) bool {
		for n := range c.configs {
			if c.at(n).View().IsShort() != want {
				return false
			}
		}
		return true
	}
	short := func(want bool) {
		t.Helper()
		until(t, fmt.Sprintf("short %t at all nodes", want), func() bool {
			c.handOver(leads) // a voter without room leads after a stall of the leader
			return all(want)
		})
	}
	short(false)
	gauges[followers[0]].Store(spaceFloor - 1)
	gauges[3].Store(spaceFloor - 1) // it has no vote
	until(t, "the leader's look at the others", func() bool {
		answer := c.at(leads).node.Statuses(patient(t), map[string]string{
			c.configs[followers[0]].Node: c.configs[followers[0]].Cluster.Listen})
		return answer[c.configs[followers[0]].Node].Short
	})
	openCustomer(t, c.at(3), "one")
	short(false)
	gauges[followers[1]].Store(spaceFloor - 1)
	short(true)
	gauges[followers[1]].Store(2 * spaceFloor)
	short(false)
	gauges[leads].Store(0)
	short(true)
	// A new leader finds out on its own.
	c.kill(leads)
	until(t, "what the new leader finds", func() bool {
		return c.untilLed() == followers[0] || !c.at(followers[1]).View().IsShort()
	})
	gauges[leads].Store(2 * spaceFloor)
	gauges[followers[0]].Store(2 * spaceFloor)
	c.start(leads)
	c.ready(leads)
	until(t, "room at all nodes", func() bool { return all(false) })
}

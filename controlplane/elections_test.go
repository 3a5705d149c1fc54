package controlplane

import (
	"flag"
	"log/slog"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
)

var slowWrites = flag.Duration("slow-writes", 300*time.Millisecond,
	"how long each write takes of the disks on which a leader is elected")

// One election takes some six writes in sequence. So on such a disk none ends within Raft's own
// timeout.
func TestLeaderIsElectedOnSlowDisks(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 0)
	n := c.untilLed()
	c.net.cut(c.configs[n].Node)
	c.writes.Store(int64(*slowWrites))
	c.kill(n)
	began := time.Now()
	n = c.untilLed()
	t.Logf("a leader after %v", time.Since(began).Round(time.Millisecond))
	if _, err := client.Do(patient(t), c.at(n), client.TouchKeys{}, nil); err != nil {
		t.Fatal(err)
	}
	c.writes.Store(0)
}

// TestElectionsAreLogged: every process logs who asks for votes, who gets them and who leads.
func TestElectionsAreLogged(t *testing.T) {
	t.Parallel()
	j := &journal{}
	config := testConfig(t, t.TempDir())
	config.Logger = slog.New(slog.NewTextHandler(j, nil))
	serve(t, config)
	for line, again := range map[string]bool{ // on a slow disk elections begin again
		"raft: entering candidate state": true, "raft: voting for self": true,
		"raft: election won": false, "raft: entering leader state": false} {
		if n := j.count(`level=INFO msg="` + line); n == 0 || n > 1 && !again {
			t.Errorf("%q is in the log %d times:\n%s", line, n, j.text.String())
		}
	}
}

// TestHandoversAreLogged: Raft's own words for votes and for a lost leadership are those that we
// make info lines of.
func TestHandoversAreLogged(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, controlPlane)
	}
	r.untilServers("a* b* c*")
	lines, before := []string{"asking for vote", "vote granted", "voting for self", "election won",
		"entering leader state", "entering follower state"}, map[string]int{}
	count := func(line string) int { return r.journal.count(`level=INFO msg="raft: ` + line) }
	for _, line := range lines {
		before[line] = count(line)
	}
	r.nextLeader()
	for _, line := range lines {
		r.until("Raft logs: "+line, func() bool { return count(line) > before[line] })
	}
}

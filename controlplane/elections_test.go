package controlplane

import (
	"log/slog"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
)

// One election takes some six writes in sequence. So on such a disk none ends within Raft's own
// timeout.
func TestLeaderIsElectedOnSlowDisks(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 0)
	n := c.untilLed()
	c.net.cut(c.configs[n].Node)
	c.writes.Store(int64(300 * time.Millisecond))
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
	for _, line := range []string{"raft: entering candidate state", "raft: voting for self",
		"raft: election won", "raft: entering leader state"} {
		if j.count(`level=INFO msg="`+line) != 1 {
			t.Errorf("%q is not in the log once:\n%s", line, j.text.String())
		}
	}
}

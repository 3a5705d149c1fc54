package controlplane

import (
	"log/slog"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// TestElectionsAreLogged: who asks for votes, who gets them and who leads is in the log of every process.
func TestElectionsAreLogged(t *testing.T) {
	t.Parallel()
	j := &journal{}
	cfg := testConfig(t, t.TempDir())
	cfg.Logger = slog.New(slog.NewTextHandler(j, nil))
	serve(t, cfg)
	for _, line := range []string{"raft: entering candidate state", "raft: voting for self", "raft: election won", "raft: entering leader state"} {
		if j.count(`level=INFO msg="`+line) != 1 {
			t.Errorf("%q is not in the log once:\n%s", line, j.text.String())
		}
	}
}

func TestLevelsOfRaftsLines(t *testing.T) {
	t.Parallel()
	j := &journal{}
	to := slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log := raftLogger(to, slog.LevelInfo)
	log.Error("failed to heartbeat to", "peer", "cp2")
	log.Warn("Election timeout reached, restarting election")
	log.Debug("vote granted", "from", "cp2")
	log.Debug("calculated votes needed", "needed", 2)
	log.Info("snapshot complete up to", "index", 7)
	log.Info("initial configuration", "servers", hclog.Fmt("%v", []int{3}))
	raftLogger(to, slog.LevelDebug).Info("creating new snapshot")
	for _, want := range []string{
		`level=WARN msg="raft: failed to heartbeat to" peer=cp2`,
		`level=INFO msg="raft: election timeout reached, restarting election"`,
		`level=INFO msg="raft: vote granted" from=cp2`,
		`level=DEBUG msg="raft: calculated votes needed" needed=2`,
		`level=DEBUG msg="raft: snapshot complete up to" index=7`,
		`level=DEBUG msg="raft: creating new snapshot"`,
		`level=INFO msg="raft: initial configuration" servers=[3]`,
	} {
		if j.count(want) != 1 {
			t.Errorf("not there once: %s\n%s", want, j.text.String())
		}
	}
}

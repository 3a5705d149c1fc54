package node

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestLevelsOfRaftsLines(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	to := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
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
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("not there once: %s\n%s", want, text.String())
		}
	}
}

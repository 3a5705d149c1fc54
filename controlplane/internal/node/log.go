package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// raftLogger passes Raft's log on to ours. Its info lines and warnings get the level news, because
// elections and lost contacts are routine. Its errors become warnings: mostly they are calls to
// nodes that are gone.
func raftLogger(to *slog.Logger, news slog.Level) hclog.Logger {
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off,
		Output: io.Discard})
	logger.RegisterSink(raftLines{to: to, news: news})
	return logger
}

type raftLines struct {
	to   *slog.Logger
	news slog.Level
}

// Raft logs votes below info although they matter, and snapshots at info although they do not.
var (
	raftVotes     = []string{"vote granted", "asking for vote", "voting for self"}
	raftSnapshots = []string{"starting snapshot up to", "compacting logs",
		"snapshot complete up to"}
)

// Accept implements hclog.SinkAdapter.
func (l raftLines) Accept(_ string, level hclog.Level, message string, args ...any) {
	as := l.news
	switch {
	case level >= hclog.Error:
		as = slog.LevelWarn
	case slices.Contains(raftVotes, message):
	case level < hclog.Info || slices.Contains(raftSnapshots, message):
		as = slog.LevelDebug
	}
	for i, arg := range args {
		if format, ok := arg.(hclog.Format); ok && len(format) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(format[0]), format[1:]...)
		}
	}
	l.to.Log(context.Background(), as, "raft: "+strings.ToLower(message[:1])+message[1:], args...)
}

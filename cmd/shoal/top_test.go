package main

import (
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestTopOnce(t *testing.T) {
	b := newShell(t)
	b.api.Nodes = []string{apitest.TopNode}
	got := b.shoal("top", "--once")
	got.want(t, terminal.ExitOK, "n1 leads in term 3   64 of 64 shards owned", "pages/s 0.0",
		"lag   tasks 1   pages 2   receipts 3",
		"n1             alive    leader       0 ctl,fetch        64      3     2.5  1.1s")
	if strings.Contains(got.out, "\x1b") {
		t.Errorf("%q is for a terminal", got.out)
	}
	b.shoal("top").want(t, terminal.ExitUsage, "needs a terminal")
	b.api.Refuse["GET /api/admin/nodes"] = apitest.Problem{Status: 503, Code: "unavailable",
		Detail: "no leader", Retry: "5"}
	b.shoal("top", "--once").want(t, terminal.ExitFailed, "no leader")
	b.api.Close()
	b.shoal("top", "--once").want(t, terminal.ExitNoAccess, "cannot be reached")
	b.shoal("top").want(t, terminal.ExitNoAccess, "cannot be reached")
}

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestTheTrailVerifies checks the real trail with the verifying command, over a kill and a restore.
// What the server reports of an entry is what it hashed.
func TestTheTrailVerifies(t *testing.T) {
	t.Parallel()
	s := newService(t, newWeb(t, synthweb.Config{}), suite.Fast()...)
	dir := t.TempDir()
	command := func(args ...string) string {
		t.Helper()
		out, err := s.Command(suite.Within(t, suite.Patience), args...)
		if err != nil {
			t.Fatalf("%s\n%s", err, out)
		}
		return out
	}
	verify := func(holds string, args ...string) (head string) {
		t.Helper()
		out := command(append([]string{"audit", "verify"}, args...)...)
		if !strings.Contains(out, "The chain holds: ") || !strings.Contains(out, holds) {
			t.Fatalf("%s", out)
		}
		return strings.TrimSuffix(out[strings.LastIndex(out, " ")+1:], ".")
	}
	act := func(n int) {
		t.Helper()
		for range n {
			s.Fill(s.Client, 1_000)
			suite.Must(s.MintKey(t.Context(), `a "name" <&> of ünïcode`, "USER"))(t)
		}
	}
	act(3)
	backup, before := filepath.Join(dir, "state"), filepath.Join(dir, "before.jsonl")
	command("cluster", "backup", backup)
	first := verify("")
	s.p.Kill()
	<-s.p.Ended()
	s.start()
	act(2)
	left := verify("is the one that you know", "--head", first)
	command("audit", "export", "-o", before)
	command("cluster", "restore", backup)
	act(1)
	verify("is the one that you know", "--head", first)
	newest := verify("was left behind by the restore at entry", "--head", left)
	after := filepath.Join(dir, "after.jsonl")
	command("audit", "export", "-o", after)
	verify("is the one that you know", "--head", newest, after)
	if verify("", before) != left {
		t.Error("the export before the restore has another head")
	}
	text, err := os.ReadFile(after)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"amountMicros":1000`, `"amountMicros":9000`, 1)
	if err := os.WriteFile(after, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := s.Command(t.Context(), "audit", "verify", after)
	if err == nil || !strings.Contains(out, "was changed: the hash is that of another text.") {
		t.Errorf("a forged export: %v\n%s", err, out)
	}
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestBackupIsAFileWhenItIsWhole(t *testing.T) {
	b := newShell(t)
	file := filepath.Join(t.TempDir(), "state.backup")
	rows := file + ".rows"
	b.shoal("cluster", "backup", file).want(t, terminal.ExitOK, "bytes are in "+file,
		"bytes of rows are in "+file+".rows")
	if calls := b.api.Calls; !slices.Equal(calls, []string{"GET /api/admin/backup",
		"GET /api/admin/backup/rows"}) { // the rows have to be newer than the state
		t.Errorf("calls %v", calls)
	}
	for path, want := range map[string]string{file: "\"the state\"\n", rows: "\"the rows\"\n"} {
		if saved, err := os.ReadFile(path); err != nil || string(saved) != want {
			t.Errorf("%s has %q: %v", path, saved, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s: %v, %v", path, info, err)
		}
	}
	b.shoal("cluster", "backup", file).want(t, terminal.ExitUsage, file+" is there already")
	b.shoal("cluster", "backup", "--force", file).want(t, terminal.ExitOK)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.shoal("cluster", "backup", file).want(t, terminal.ExitUsage, rows+" is there already")
	if err := os.Remove(rows); err != nil {
		t.Fatal(err)
	}
	b.api.Refuse["GET /api/admin/backup/rows"] = apitest.Problem{Status: 400, Code: "not_found",
		Detail: "it has its own"}
	b.shoal("cluster", "backup", file).want(t, terminal.ExitOK, "rows are not in it")
	other := filepath.Join(filepath.Dir(file), "other.backup")
	fails := func(want string) {
		t.Helper()
		b.shoal("cluster", "backup", other).want(t, terminal.ExitFailed, want)
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
			t.Errorf("files: %v, %v", left, err)
		}
	}
	b.api.Refuse["GET /api/admin/backup"] = apitest.Problem{Status: 500, Code: "internal_error",
		Detail: "oh"}
	fails("oh")
	delete(b.api.Refuse, "GET /api/admin/backup")
	b.api.Refuse["GET /api/admin/backup/rows"] = apitest.Problem{Status: 500,
		Code: "internal_error", Detail: "no rows"}
	fails("no rows")
	delete(b.api.Refuse, "GET /api/admin/backup/rows")
	b.api.CutOff = "GET /api/admin/backup/rows"
	fails("broke off")
}

func TestBackupIsSentWhole(t *testing.T) {
	b := newShell(t)
	file := filepath.Join(t.TempDir(), "state.backup")
	b.shoal("cluster", "restore", file).want(t, terminal.ExitUsage)
	if err := os.WriteFile(file, []byte("the state"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.shoal("cluster", "restore", file).want(t, terminal.ExitOK, "2026-11-02T03:04:05.000Z",
		"index 42", "3 runs launched since: undone",
		"kept until 2026-11-03T03:04:05.000Z", "1 key revoked since: still revoked",
		"balances: 0.50 EUR in all, 2.50 EUR before",
		"the row store's history ends at index 40")
	b.shoal("cluster", "restore", "--revive-keys", file).want(t, terminal.ExitOK)
	const call = "POST /api/admin/restore"
	if b.api.Bodies[call] != "the state" || b.api.Types[call] != "application/octet-stream" {
		t.Errorf("sent %q as %q", b.api.Bodies[call], b.api.Types[call])
	}
	b.api.Refuse[call] = apitest.Problem{Status: 409, Code: "other_cluster",
		Detail: "force takes it all the same"}
	b.shoal("cluster", "restore", file).want(t, terminal.ExitFailed, "force takes it")
}

func TestKeptBackups(t *testing.T) {
	b := newShell(t)
	const name = "20261102T030405.678Z-66f0c2a1b7d4e8f901234567"
	got := b.shoal("cluster", "backups")
	got.want(t, terminal.ExitOK)
	for _, want := range []string{"NAME", name, "2026-11-02 03:04:05", "4711", "8128"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in %s", want, got.out)
		}
	}
	if got = b.shoal("cluster", "backups", "--json"); !strings.Contains(got.out, `"bytes": 4711`) {
		t.Errorf("%s", got.out)
	}
	const call = "POST /api/admin/backups/" + name + "/restore"
	b.shoal("cluster", "restore", "--force", name).want(t, terminal.ExitOK, "index 42")
	if sent := b.api.Bodies[call]; sent != `{"force":true,"reviveKeys":false}` {
		t.Errorf("sent %s", sent)
	}
	b.api.Refuse[call] = apitest.Problem{Status: 400, Code: "not_found", Detail: "no backup"}
	b.shoal("cluster", "restore", name).want(t, terminal.ExitFailed, "no backup")
	b.shoal("cluster", "restore", "missing").want(t, terminal.ExitUsage, "there is no file missing")
}

func TestBackupThroughAPipe(t *testing.T) {
	b := newShell(t)
	got := b.shoal("cluster", "backup", "-")
	got.want(t, terminal.ExitOK, "bytes are written, without rows")
	if got.out != "\"the state\"\n" {
		t.Errorf("standard output holds %q", got.out)
	}
	b.in = got.out
	b.shoal("cluster", "restore", "-").want(t, terminal.ExitOK, "index 42")
	if sent := b.api.Bodies["POST /api/admin/restore"]; sent != got.out {
		t.Errorf("sent %q", sent)
	}
	b.api.CutOff = "GET /api/admin/backup"
	got = b.shoal("cluster", "backup", "-")
	got.want(t, terminal.ExitFailed, "what was written is no backup: the backup broke off "+
		"after 4 bytes")
	if got.out != "half" {
		t.Errorf("standard output holds %q", got.out)
	}
	b.api.Refuse["GET /api/admin/backup"] = apitest.Problem{Status: 500, Code: "internal_error",
		Detail: "oh"}
	b.shoal("cluster", "backup", "-").want(t, terminal.ExitFailed,
		"what was written is no backup: oh")
}

func TestRemoveNode(t *testing.T) {
	b := newShell(t)
	b.shoal("cluster", "remove", "cp2").want(t, terminal.ExitOK,
		"cp2 is not part of the cluster any more")
	b.api.Refuse["DELETE /api/admin/nodes/cp2"] = apitest.Problem{Status: 409, Code: "node_alive",
		Detail: "stop it first"}
	b.shoal("cluster", "remove", "cp2").want(t, terminal.ExitFailed, "stop it first")
	b.shoal("cluster", "remove", "").want(t, terminal.ExitUsage, "<node>: want a node's name")
}

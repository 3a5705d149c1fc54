package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBackupIsAFileWhenItIsWhole(t *testing.T) {
	b := newShell(t)
	file := filepath.Join(t.TempDir(), "state.backup")
	b.shoal("cluster", "backup", file).want(t, exitOK, "bytes are in "+file)
	saved, err := os.ReadFile(file)
	if err != nil || len(saved) == 0 {
		t.Fatalf("%d bytes: %v", len(saved), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	b.shoal("cluster", "backup", file).want(t, exitUsage, "is there already")
	b.shoal("cluster", "backup", "--force", file).want(t, exitOK)
	b.api.refuse["GET /api/admin/backup"] = problem{status: 500, code: "internal_error", detail: "oh"}
	other := filepath.Join(filepath.Dir(file), "other.backup")
	b.shoal("cluster", "backup", other).want(t, exitFailed, "oh")
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("files: %v, %v", left, err)
	}
}

func TestBackupIsSentWhole(t *testing.T) {
	b := newShell(t)
	file := filepath.Join(t.TempDir(), "state.backup")
	b.shoal("cluster", "restore", file).want(t, exitUsage)
	if err := os.WriteFile(file, []byte("the state"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.shoal("cluster", "restore", file).want(t, exitOK, "2026-11-02T03:04:05.000Z", "index 42", "3 runs launched since: undone",
		"kept until 2026-11-03T03:04:05.000Z", "1 key revoked since: still revoked", "balances: 0.50 EUR in all, 2.50 EUR before")
	b.shoal("cluster", "restore", "--revive-keys", file).want(t, exitOK)
	const call = "POST /api/admin/restore"
	if b.api.bodies[call] != "the state" || b.api.types[call] != "application/octet-stream" {
		t.Errorf("sent %q as %q", b.api.bodies[call], b.api.types[call])
	}
	b.api.refuse[call] = problem{status: 409, code: "other_cluster", detail: "force takes it all the same"}
	b.shoal("cluster", "restore", file).want(t, exitFailed, "force takes it")
}

func TestBackupThroughAPipe(t *testing.T) {
	b := newShell(t)
	got := b.shoal("cluster", "backup", "-")
	got.want(t, exitOK, "bytes are written")
	if got.out != "\"the state\"\n" {
		t.Errorf("standard output holds %q", got.out)
	}
	b.in = got.out
	b.shoal("cluster", "restore", "-").want(t, exitOK, "index 42")
	if sent := b.api.bodies["POST /api/admin/restore"]; sent != got.out {
		t.Errorf("sent %q", sent)
	}
	b.api.cut = "GET /api/admin/backup"
	got = b.shoal("cluster", "backup", "-")
	got.want(t, exitFailed, "what was written is no backup: the backup broke off after 4 bytes")
	if got.out != "half" {
		t.Errorf("standard output holds %q", got.out)
	}
	b.api.refuse["GET /api/admin/backup"] = problem{status: 500, code: "internal_error", detail: "oh"}
	b.shoal("cluster", "backup", "-").want(t, exitFailed, "what was written is no backup: oh")
}

func TestRemoveNode(t *testing.T) {
	b := newShell(t)
	b.shoal("cluster", "remove", "cp2").want(t, exitOK, "cp2 is not part of the cluster any more")
	b.api.refuse["DELETE /api/admin/nodes/cp2"] = problem{status: 409, code: "node_alive", detail: "stop it first"}
	b.shoal("cluster", "remove", "cp2").want(t, exitFailed, "stop it first")
	b.shoal("cluster", "remove", "").want(t, exitUsage, "<node>: want a node's name")
}

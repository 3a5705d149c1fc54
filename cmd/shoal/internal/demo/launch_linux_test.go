package demo

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/service"
)

// launchedBy is set in the process that TestNodesEndWithTheirLauncher kills.
const launchedBy = "SHOAL_TEST_LAUNCHED_BY"

// TestNodesEndWithTheirLauncher: leftover nodes of a killed demo would be in the way of the next
// one.
func TestNodesEndWithTheirLauncher(t *testing.T) {
	const nodes = 3
	if dir := os.Getenv(launchedBy); dir != "" {
		for range nodes {
			launchScript(t, dir, "",
				`exec 3>`+filepath.Join(dir, "fifo")+`; echo up >&3; exec sleep 600`)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent is gone
		return
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	launcher := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	launcher.Env = append(os.Environ(), launchedBy+"="+dir)
	stdin, err := launcher.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	running, err := os.Open(fifo) // held open by each node as long as it runs
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	said := bufio.NewScanner(running)
	for range nodes {
		if !said.Scan() {
			t.Fatal("the nodes do not come up")
		}
	}
	_ = launcher.Process.Kill()
	_ = launcher.Wait() // it was killed
	for said.Scan() {   // until all have ended
		t.Errorf("more is said: %q", said.Text())
	}
}

// launchScript launches a script as a node, whose ops address is given.
func launchScript(t *testing.T, dir, ops, script string) running {
	t.Helper()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil { // a running one is read-only
		t.Fatal(err)
	}
	r, err := (&processes{program: program}).launch(t.Context(),
		service.Config{Data: dir, OpsListen: ops})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestANodeIsNotTakenForAnother: an answer from another program at a node's port does not count.
func TestANodeIsNotTakenForAnother(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"pid":1,"status":"ok"}`)
	}))
	defer other.Close()
	r := launchScript(t, t.TempDir(), strings.TrimPrefix(other.URL, "http://"),
		`echo 'shoal: the port is in use'; exit 1`)
	if err := r.await(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the port is in use") {
		t.Errorf("it awaits %v", err)
	}
	if r, err := (&processes{program: "/nowhere"}).launch(t.Context(),
		service.Config{Data: t.TempDir()}); err == nil {
		t.Errorf("it launches %v", r)
	}
}

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A cluster in one process, with nothing installed: it reads the demo web, loses its leader, grows, and drains a fetcher.
func TestClusterDemoInOneProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	first := freePorts(t, 2+3*13) // two API servers, and three for each of 13 nodes
	command := exec.CommandContext(ctx, binary(t), "cluster", "demo", "--data", t.TempDir(),
		"--listen", fmt.Sprintf("127.0.0.1:%d", first), "--base-port", strconv.Itoa(first+2))
	said, told := io.Pipe()
	command.Stdout, command.Stderr = told, told
	tell, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		_ = told.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(said)
	expect := func(text string) string {
		t.Helper()
		var heard []string
		for lines.Scan() {
			if heard = append(heard, lines.Text()); strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		t.Fatalf("it never said %q, but:\n%s", text, strings.Join(heard, "\n"))
		return ""
	}
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(tell, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}

	expect("COMPLETED: 1,958 rows, 2,000 pages, 42 failed links")
	expect("takes commands")
	say("kill leader")
	expect("is gone")
	say("run 300")
	expect("COMPLETED: ")
	say("add fetcher")
	expect("fetcher4 has joined")
	say("drain fetcher1")
	expect("fetcher1: DRAINED, 0 shards, 0 tasks open")
	say("dance")
	expect(`no command "dance"`)
	say("start cp9")
	expect(`no node "cp9"`)
	say("nodes")
	expect("fetcher4  ALIVE")
	say("quit")
	for lines.Scan() { // until it ends
		continue
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// freePorts is the first of some ports in a row that nobody listens on now.
func freePorts(t *testing.T, count int) int {
	t.Helper()
	for first := 21_000; first < 60_000; first += count {
		free := 0
		for port := first; port < first+count; port++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				break
			}
			free++
			_ = l.Close()
		}
		if free == count {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

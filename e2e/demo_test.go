package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
)

// TestClusterDemoInOneProcess runs a cluster in one process, with nothing installed. It reads the
// demo web, loses its leader, grows and drains a fetcher. Restarted on its data, it continues,
// although no node alone has a majority.
func TestClusterDemoInOneProcess(t *testing.T) {
	first := freePorts(t, 2+3*13) // two API servers, and three for each of 13 nodes
	arguments := []string{"cluster", "demo", "--data", t.TempDir(), "--listen",
		fmt.Sprintf("127.0.0.1:%d", first),
		"--base-port", strconv.Itoa(first + 2)}

	d := startDemo(t, arguments...)
	d.expect("COMPLETED: 1,958 rows, 2,000 pages, 42 failed links")
	d.expect("takes commands")
	d.insist("kill leader", "is gone", "nobody leads at the moment")
	d.say("run")
	d.expect("2,000 pages of 40 hosts")
	d.say("kill fetcher3") // in the middle of the drain
	d.expect("fetcher3 is gone", "COMPLETED: 1,958 rows, 2,000 pages, 42 failed links")
	d.say("add fetcher")
	d.expect("fetcher4 has joined")
	d.insist("drain fetcher1", "fetcher1: DRAINED, 0 shards, 0 tasks open",
		"fetcher1 is not heard any more")
	d.say("run 3000")
	d.expect("run: 1 to 2,000 pages: the demo's web has no more")
	d.say("dance")
	d.expect(`no command "dance"`)
	d.say("start cp9")
	d.expect(`no node "cp9"`)
	d.insist("nodes", "fetcher4  ALIVE", "fetcher4  FAILED")
	d.quit()

	d = startDemo(t, arguments...)
	d.expect("Found from earlier: 2 runs")
	d.expect("COMPLETED: 1,958 rows, 2,000 pages, 42 failed links")
	d.expect("takes commands")
	for _, node := range []string{"cp1", "cp2", "cp3"} {
		d.say("kill " + node)
		d.expect(node + " is gone")
	}
	d.say("start cp1")
	d.expect("cp1 is starting")
	d.say("start cp2") // cp1 waits for it
	d.expect("cp2 is starting")
	d.expect(" runs.")
	d.expect(" runs.")
	d.quit()
}

// demo is a cluster demo that takes commands.
type demo struct {
	t     *testing.T
	tell  io.Writer
	lines *bufio.Scanner
	ended chan error
}

func startDemo(t *testing.T, arguments ...string) *demo {
	t.Helper()
	command := exec.CommandContext(suite.Within(t, suite.Patience), binary(t), arguments...)
	said, told := io.Pipe()
	command.Stdout, command.Stderr = told, told
	tell, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	d := &demo{t: t, tell: tell, lines: bufio.NewScanner(said), ended: make(chan error, 1)}
	go func() {
		err := command.Wait()
		_ = told.Close()
		d.ended <- err
	}()
	return d
}

// expect reads on until all texts have appeared, in any order.
func (d *demo) expect(texts ...string) {
	d.t.Helper()
	var heard []string
	for d.lines.Scan() {
		line := d.lines.Text()
		heard = append(heard, line)
		texts = slices.DeleteFunc(texts,
			func(text string) bool { return strings.Contains(line, text) })
		if len(texts) == 0 {
			return
		}
	}
	d.t.Fatalf("it never said %q, but:\n%s", texts, strings.Join(heard, "\n"))
}

// insist says a line, and repeats it while the answer is one that soon passes on a busy machine. A
// drain that is given up ends it, too.
func (d *demo) insist(line, want, passing string) {
	d.t.Helper()
	d.say(line)
	var heard []string
listening:
	for again := 0; again <= 50 && d.lines.Scan(); {
		answer := d.lines.Text()
		heard = append(heard, answer)
		switch {
		case strings.Contains(answer, want):
			return
		case strings.Contains(answer, passing):
			<-time.After(200 * time.Millisecond)
			d.say(line)
			again++
		case strings.Contains(answer, "is not done within"):
			break listening
		}
	}
	d.t.Fatalf("to %q it never said %q, but:\n%s", line, want, strings.Join(heard, "\n"))
}

func (d *demo) say(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.tell, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// quit ends the demo.
func (d *demo) quit() {
	d.t.Helper()
	d.say("quit")
	for d.lines.Scan() { // until it ends
		continue
	}
	if err := <-d.ended; err != nil {
		d.t.Error(err)
	}
}

// freePorts returns the first of count consecutive ports without a listener.
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

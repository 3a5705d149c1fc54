package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// A job is a peer that is its own program: bench/peers has the sources, and the install script
// there builds them. Its arguments are a file of addresses, a file for its rows as JSON lines, and
// the most requests in flight. The argument "absent" asks for the sixth field, too. It ends once
// all rows are written.

// installPeers is the command that installs the jobs.
const installPeers = "make peers"

// jobs are the contenders that are their own programs.
func jobs() []contender {
	return []contender{
		{name: "colly", about: "colly", times: 1},
		{name: "colly-unpatched", about: "the same with the HTML parser of its go.mod, which " +
			"hostile pages can hang", times: 1},
		{name: "hyper-lol-html", about: "Rust: hyper and lol_html, the fastest that one " +
			"writes oneself", times: 2},
		{name: "hyper-lol-html-early",
			about: "the same, which stops parsing once it has all fields", times: 5},
		{name: "spider", about: "the Rust crate spider, with lol_html for the fields", times: 1},
		{name: "undici-htmlparser2", about: "Node: undici and htmlparser2", times: 1},
		{name: "undici-htmlparser2-early", about: "the same, which stops parsing once it " +
			"has all fields", times: 1},
		{name: "aiohttp-lexbor", about: "Python: aiohttp and lexbor (selectolax) on uvloop",
			times: 1},
		{name: "jsoup", about: "Java: its own HTTP client and jsoup", times: 1},
		{name: "scrapy-tuned", about: "Scrapy with lexbor and uvloop, and without what a list " +
			"does not need", times: 1, part: 2},
		{name: "stormcrawler", about: "StormCrawler in Storm's local mode", times: 1},
		{name: "crawlee-http", about: "Crawlee's HttpCrawler, with htmlparser2 for the fields",
			times: 1, part: 2},
		{name: "scrapy", about: "Scrapy as it comes", times: 1, part: 4},
		{name: "crawlee-cheerio", about: "Crawlee's CheerioCrawler", times: 1, part: 4},
	}
}

// isJob says whether a contender is its own program.
func isJob(name string) bool {
	return slices.ContainsFunc(jobs(), func(c contender) bool { return c.name == name })
}

// installed says whether a job's program is in the peers' directory.
func installed(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// version returns the versions that a job's program states in a comment at its head.
func version(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name)) // the version stays unknown if this fails
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}

const (
	pollTime = 5 * time.Millisecond // between two checks of a job's rows
	endTime  = time.Minute          // how long a job may take to end after its last row
)

// jobRun is a job in progress.
type jobRun struct {
	command *exec.Cmd
	rows    *rowFile
	total   int
	warmUp  int
}

// runJob measures a job, which does not know when the warm-up is over. It leaves out the job's use
// of resources before the warm-up's last row and after the last row of all.
func runJob(ctx context.Context, t task) (s sample, err error) {
	web, err := synthweb.New(loopbackConfig(t.addresses()))
	if err != nil {
		return s, err
	}
	addresses, err := jobAddresses(web, t)
	if err != nil {
		return s, err
	}
	run, err := startJob(ctx, t, addresses)
	if err != nil {
		return s, err
	}
	s, err = run.measure(ctx)
	if err = run.end(err); err != nil {
		return s, err
	}
	s.Rows, err = checkJob(web, run.rows, addresses, t)
	return s, err
}

// jobAddresses returns what a job reads: the warm-up's addresses, and the measured ones as often as
// it reads them.
func jobAddresses(web *synthweb.Web, t task) ([]string, error) {
	all := jobs()
	at := slices.IndexFunc(all, func(c contender) bool { return c.name == t.Contender })
	if at < 0 {
		return nil, fmt.Errorf("no job %q", t.Contender)
	}
	c := all[at]
	_, port, ok := strings.Cut(t.Web, ":")
	if !ok {
		return nil, fmt.Errorf("the web is at %q", t.Web)
	}
	list := loopbackAddresses(web, t.addresses(), port)
	measured := list[t.WarmUp:]
	measured = measured[:len(measured)/max(c.part, 1)]
	return slices.Concat(list[:t.WarmUp], slices.Repeat(measured, c.times)), nil
}

func startJob(ctx context.Context, t task, addresses []string) (*jobRun, error) {
	list, rows := filepath.Join(t.Dir, "addresses"), filepath.Join(t.Dir, "rows")
	if err := os.WriteFile(list, []byte(strings.Join(addresses, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("addresses: %w", err)
	}
	// The file exists before the job starts, and is empty: rows of an earlier job are gone.
	file, err := os.Create(rows)
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	args := []string{list, rows, strconv.Itoa(t.Concurrency)}
	if t.Absent {
		args = append(args, "absent")
	}
	command := exec.CommandContext(ctx, filepath.Join(t.Peers, t.Contender), args...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		// nothing may come between a job and its web
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children's time counts for it
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	said, err := os.Create(filepath.Join(t.Dir, "said"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("its output: %w", err), file.Close())
	}
	defer func() { _ = said.Close() }() // the job has its own handle
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &jobRun{command: command, rows: &rowFile{file: file}, total: len(addresses),
		warmUp: t.WarmUp}, nil
}

// measure returns once the last row is written, or no more can come.
func (j *jobRun) measure(ctx context.Context) (s sample, err error) {
	look := time.NewTicker(pollTime)
	defer look.Stop()
	var before process.Usage
	var started time.Time
	from := -1
	for {
		// checked before counting the rows, which are then final
		ended := hasEnded(j.command.Process.Pid)
		n, err := j.rows.count()
		if err != nil {
			return s, err
		}
		if from < 0 && n >= j.warmUp {
			from, started = n, time.Now()
			if before, err = groupUsage(j.command.Process.Pid); err != nil {
				return s, err
			}
		}
		if n >= j.total {
			after, err := groupUsage(j.command.Process.Pid)
			s = sample{Pages: j.total - from, CPU: after.CPU - before.CPU,
				Wall: time.Since(started),
				// for an ended process Linux also counts the parent's memory
				RSS: max(before.PeakBytes, after.PeakBytes)}
			if err == nil && from >= j.total {
				err = errors.New("it wrote all rows at once: its warm-up cannot be told " +
					"from the rest")
			}
			return s, err
		}
		if ended {
			return s, fmt.Errorf("it ended after %d of %d rows", n, j.total)
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("after %d of %d rows: %w", n, j.total, ctx.Err())
		case <-look.C:
		}
	}
}

// end waits for the job's end, unless err has made that pointless.
func (j *jobRun) end(err error) error {
	wait := endTime
	if err != nil {
		wait = 0
	}
	kill := time.AfterFunc(wait, func() { _ = j.command.Cancel() })
	defer kill.Stop()
	if ended := j.command.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("it did not end well: %w", ended)
	}
	if err == nil {
		return nil
	}
	said, readErr := os.ReadFile(filepath.Join(filepath.Dir(j.rows.file.Name()), "said"))
	return errors.Join(fmt.Errorf("%w\n%s", err, quote(said)), readErr, j.rows.file.Close())
}

// checkJob requires a job's rows to be exactly those of its addresses. It returns the fingerprint
// of the measured ones, for comparison with the others.
func checkJob(web *synthweb.Web, rows *rowFile, addresses []string, t task) (string, error) {
	text, err := os.ReadFile(rows.file.Name())
	if err = errors.Join(err, rows.file.Close()); err != nil {
		return "", fmt.Errorf("rows: %w", err)
	}
	found := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if _, err := checkRows(web, found, addresses); err != nil {
		return "", err
	}
	return expectedRows(web, addresses[t.WarmUp:])
}

// rowFile is a file to which another process writes lines.
type rowFile struct {
	file  *os.File
	lines int
}

// count returns how many lines there are by now.
func (r *rowFile) count() (int, error) {
	var piece [64 << 10]byte
	for {
		n, err := r.file.Read(piece[:])
		r.lines += bytes.Count(piece[:n], []byte("\n"))
		if errors.Is(err, io.EOF) {
			return r.lines, nil
		}
		if err != nil {
			return r.lines, fmt.Errorf("rows: %w", err)
		}
	}
}

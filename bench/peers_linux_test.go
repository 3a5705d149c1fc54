package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testJobMode = "test-job"

// TestJobs runs a job with a fault.
func TestJobs(t *testing.T) {
	for _, c := range []struct{ fault, complaint string }{
		{"none", ""},
		{"wrong row", "its rows are"},
		{"row missing", "it ended after 399 of 400 rows"},
		{"bad end", "it did not end well"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			peers := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\n# tests 1.0\nexec %q %s %q \"$@\"\n", os.Args[0],
				testJobMode, c.fault)
			if err := os.WriteFile(filepath.Join(peers, "colly"), []byte(script),
				0o755); err != nil {
				t.Fatal(err)
			}
			s, err := measureOne(t.Context(),
				task{Contender: "colly", Peers: peers, Dir: t.TempDir(), WarmUp: 100, Pages: 300,
					Concurrency: 4, Absent: true})
			if c.complaint != "" {
				if err == nil || !strings.Contains(err.Error(), c.complaint) {
					t.Errorf("%v, want %q", err, c.complaint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Pages < 1 || s.Pages > 300 || s.Wall <= 0 || s.RSS <= 0 ||
				!strings.HasPrefix(s.Rows, "300 rows ") {
				t.Errorf("%+v", s)
			}
		})
	}
}

// runTestJob is the process of that job.
func runTestJob(fault string, args []string) error {
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	file, err := os.Create(args[1])
	if err != nil {
		return err
	}
	started, err := startGoquery(context.Background(), task{Absent: len(args) > 3})
	if err != nil {
		return err
	}
	addresses := strings.Fields(string(text))
	if fault == "row missing" {
		addresses = addresses[1:]
	}
	out := bufio.NewWriterSize(file, 1<<10)
	for _, address := range addresses {
		row, err := testRow(started.(*goqueryCrawler), address)
		if err != nil {
			return err
		}
		if fault == "wrong row" {
			row = []byte(`{"title":"another"}`)
		}
		if _, err := fmt.Fprintf(out, "%s\n", row); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil || fault != "bad end" {
		return err
	}
	return errors.New("a bad end")
}

func testRow(reader *goqueryCrawler, address string) ([]byte, error) {
	response, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return reader.row(body)
}

// A job that writes all rows before the bench first looks cannot be measured.
func TestAllRowsAtOnce(t *testing.T) {
	dir := t.TempDir()
	rows, err := os.Create(filepath.Join(dir, "rows"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "said"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rows.Name(), []byte(strings.Repeat("{}\n", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := newCommand(t.Context(), "sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	job := &jobRun{command: command, rows: &rowFile{file: rows}, total: 400, warmUp: 100}
	_, err = job.measure(t.Context())
	if err = job.end(err); err == nil ||
		!strings.Contains(err.Error(), "it wrote all rows at once") {
		t.Error(err)
	}
}

func TestParseMember(t *testing.T) {
	p, err := parseMember([]byte("7 (a) b) Z 1 5 1 0 -1 4194304 100 0 0 0 250 75 20 5 " +
		"20 0 9 0 1 2 3"))
	if want := (member{ended: true, group: 5, cpu: 3500 * time.Millisecond}); err != nil ||
		p != want {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
	if _, err := parseMember([]byte("7 (a) S 1")); err == nil {
		t.Error("a short line was read")
	}
}

func TestMissingPeers(t *testing.T) {
	o, err := parseOptions([]string{"-peers", t.TempDir()})
	// Without -before there is no earlier whole loop either.
	if err != nil || len(o.missing) != len(jobs()) ||
		len(o.contenders) != len(contenders())-len(jobs())-1 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := parseOptions([]string{"-peers", t.TempDir(), "-only", "scrapy"}); err == nil {
		t.Error("who is not installed was taken")
	}
}

func TestChart(t *testing.T) {
	run := func(absent bool, order ...string) *report {
		r := &report{Date: "2026-01-02 03:04", Machine: "a & b", Absent: absent, Order: order,
			Rounds: map[string][]sample{}}
		for i, name := range order {
			s := sample{Pages: 100_000, CPU: time.Duration(i+1) * time.Second, Rows: "rows"}
			if name == rawFasthttp {
				s.Rows = ""
			}
			r.add(name, s)
		}
		return r
	}
	text := chart([]*report{run(false, fetcherAlone, rawFasthttp, "scrapy"),
		run(true, "scrapy", "colly")})
	for _, want := range []string{"a &amp; b", ">fetcher<", ">scrapy<", ">colly<", ">100,000<",
		">33,333<", ">50,000<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %s", want)
		}
	}
	if strings.Contains(text, ">fasthttp<") {
		t.Error("who makes no rows is in the chart")
	}
	if strings.Index(text, ">fetcher<") > strings.Index(text, ">colly<") {
		t.Error("the fastest is not the first")
	}
}

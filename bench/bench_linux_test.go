package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/testkit/process"
)

// TestMain is also the bench's other processes: it starts them from its own binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && slices.Contains([]string{webMode, loopbackWebMode, contenderMode},
		os.Args[1]) {
		main()
		return
	}
	if len(os.Args) > 3 && os.Args[1] == testJobMode {
		if err := runTestJob(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestBench runs all contenders on a few pages: each must find the rows of the web's truth.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	before := filepath.Join(dir, "before")
	if err := buildShoal(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"-quick", "-absent", "-before", before, "-profile",
		filepath.Join(dir, "profiles")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := measureRounds(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Rounds[fasthttpGoquery][0].Rows
	if !strings.HasPrefix(want, fmt.Sprintf("%d rows ", o.pages)) {
		t.Errorf("goquery found %q, want %d rows", want, o.pages)
	}
	for _, c := range contenders() {
		if isJob(c.name) {
			continue // none is installed where a test runs
		}
		samples := r.Rounds[c.name]
		if len(samples) != 1 {
			t.Fatalf("%s: %d samples, want 1", c.name, len(samples))
		}
		s := samples[0]
		if s.Pages != o.pages*c.times || s.Wall <= 0 || s.CPU <= 0 || s.RSS <= 0 {
			t.Errorf("%s: %+v", c.name, s)
		}
		if c.name != rawFasthttp && c.name != rawNetHTTP && s.Rows != want {
			t.Errorf("%s found %s, goquery %s", c.name, s.Rows, want)
		}
	}
	if !strings.Contains(r.markdown(), "of the binary before") {
		t.Error("the report does not compare with the binary before")
	}
	path, err := r.save(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, extension := range []string{".md", ".json"} {
		if info, err := os.Stat(path + extension); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path+extension, err)
		}
	}
}

// Linux rounds user and system time down to a tick, separately.
func TestUsageOfAnotherProcess(t *testing.T) {
	own, err := ownUsage()
	if err != nil {
		t.Fatal(err)
	}
	other, err := process.UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if other.CPU+2*clockTick < own.CPU || other.PeakBytes < own.PeakBytes {
		t.Errorf("by its number %+v, by itself a moment before %+v", other, own)
	}
}

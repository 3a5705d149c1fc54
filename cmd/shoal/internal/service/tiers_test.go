package service

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/model"
)

func TestReadProxies(t *testing.T) {
	write := func(text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "proxies")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if all, err := readProxies(""); err != nil || len(all) != 0 {
		t.Errorf("no file: %v, %v", all, err)
	}
	all, err := readProxies(write("# ours\n\nhttp://user:secret@10.0.0.1:3128\n  " +
		"socks5://10.0.0.2\n"))
	if err != nil || len(all) != 2 || all[0].String() != "http://10.0.0.1:3128" ||
		all[1].String() != "socks5://10.0.0.2:1080" {
		t.Errorf("got %v, %v", all, err)
	}
	for name, path := range map[string]string{"no file": "/nowhere/proxies",
		"none":   write("# ours\n"),
		"line 2": write("http://10.0.0.1:1\nftp://user:secret@10.0.0.1\n")} {
		all, err := readProxies(path)
		if err == nil || all != nil || strings.Contains(err.Error(), "secret") ||
			name == "line 2" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}

func TestFindChromium(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if got := findChromium(""); got != "" {
		t.Errorf("found %s", got)
	}
	path := filepath.Join(os.Getenv("PATH"), "chromium")
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for named, want := range map[string]string{"": path, NoChromium: "",
		"/opt/chromium": "/opt/chromium"} {
		if got := findChromium(named); got != want {
			t.Errorf("%q: %q, want %q", named, got, want)
		}
	}
}

// TestABrowserThatDoesNotStart: a browser that an operator named must start. One that was found on
// PATH is left out, and a launch that needs it is refused.
func TestABrowserThatDoesNotStart(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	path := filepath.Join(os.Getenv("PATH"), "chromium")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := &node{config: Config{}, clock: clock.System{}}
	var err error
	if n.signals, err = openSignals(t.Context(), n.config, NodeName, io.Discard); err != nil {
		t.Fatal(err)
	}
	n.services = &Services{cache: cache.NewLocal(n.clock)}
	if n.egress, err = egress.New(egress.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.egress.Close)
	n.reader = fetcher.NewReader(fetcher.ReaderConfig{Dir: t.TempDir(), Clock: n.clock,
		Logger: n.logger})
	found, err := n.openWeb(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Tiers(); got != model.TiersOf(model.Plain) {
		t.Errorf("found and left out: the tiers are %s", got)
	}
	found.Close()
	n.config.Chromium = path
	if web, err := n.openWeb(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "--chromium") {
		t.Errorf("named: %v, %v", web, err)
	}
}

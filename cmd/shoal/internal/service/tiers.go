package service

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/egress"
)

// NoChromium is the value of --chromium for running without a browser.
const NoChromium = "none"

// chromiumNames are the names of browsers on PATH, in the order in which they are tried.
var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome",
	"google-chrome-stable", "headless-shell"}

// findChromium returns the path of the browser for tier render: the named one, or the first on
// PATH; "" means none.
func findChromium(named string) string {
	switch named {
	case NoChromium:
		return ""
	case "":
		for _, name := range chromiumNames {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
	}
	return named
}

// openWeb makes the fetcher's access to pages. A browser that was found on PATH but does not start
// is left out. Then the launch of a scraper that needs one is refused.
func (n *node) openWeb(ctx context.Context) (*fetcher.HTTPWeb, error) {
	proxies, err := readProxies(n.config.Proxies)
	if err != nil {
		return nil, err
	}
	config := fetcher.WebConfig{Shared: n.services.cache, Clock: n.clock, Proxies: proxies,
		Logger: n.forRole("fetcher"),
		Reader: n.reader, Chromium: findChromium(n.config.Chromium)}
	web, err := fetcher.OpenWeb(ctx, n.egress, config)
	switch {
	case err == nil || config.Chromium == "" || ctx.Err() != nil:
		return web, err
	case n.config.Chromium != "":
		return nil, fmt.Errorf("--chromium: %w", err)
	}
	config.Logger.Warn("no tier render: the browser does not start", "err", err)
	config.Chromium = ""
	return fetcher.OpenWeb(ctx, n.egress, config)
}

// readProxies reads the proxies of tier super, one a line; it ignores empty lines and text after #.
// "" means no file. Errors name lines, never their content, which may hold passwords.
func readProxies(path string) ([]*egress.Proxy, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--proxies: %w", err)
	}
	defer file.Close()
	var all []*egress.Proxy
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		proxy, err := egress.ParseProxy(line)
		if err != nil {
			return nil, fmt.Errorf("--proxies: line %d of %s: %w", number, path, err)
		}
		all = append(all, proxy)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--proxies: %s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--proxies: %s names none", path)
	}
	return all, nil
}

// Package browser finds the Chromium that tests of tier render need. It starts nothing.
package browser

import (
	"os"
	"os/exec"
	"testing"
)

// Path is a Chromium on PATH. Without one the test is skipped, unless SHOAL_BROWSER_SUITE=1 says
// that there has to be one: then it fails. Short runs leave the browser out, unless they say so
// too: it takes minutes.
func Path(t *testing.T) string {
	t.Helper()
	asked := os.Getenv("SHOAL_BROWSER_SUITE") != ""
	if testing.Short() && !asked {
		t.Skip("a short run starts no Chromium without SHOAL_BROWSER_SUITE=1")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome",
		"headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if asked {
		t.Fatal("no Chromium is on PATH")
	}
	t.Skip("no Chromium is on PATH")
	return ""
}

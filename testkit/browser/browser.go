// Package browser finds the Chromium that tests of tier render need. It starts nothing.
package browser

import (
	"os"
	"os/exec"
	"testing"
)

// Path returns a Chromium on PATH. Without one it skips the test, or fails it if
// SHOAL_BROWSER_SUITE=1 requires one. Short runs skip the browser unless that is set, because it
// takes minutes.
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

// Package browser finds the Chromium that tests of tier render need. It starts nothing.
package browser

import (
	"os"
	"os/exec"
	"testing"
)

// Path is a Chromium on PATH. Without one the test is skipped, unless SHOAL_BROWSER_SUITE=1 says
// that there has to be one: then it fails.
func Path(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome",
		"headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("SHOAL_BROWSER_SUITE") != "" {
		t.Fatal("no Chromium is on PATH")
	}
	t.Skip("no Chromium is on PATH")
	return ""
}

package events

import (
	"os"
	"strings"
	"testing"
)

// Whoever reads the stream by the interface's page learns of every event that there is.
func TestEveryEventIsInTheInterface(t *testing.T) {
	page, err := os.ReadFile("../../../docs/interface/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range told() {
		if !strings.Contains(string(page), "\n| `"+event.Name+"` | ") {
			t.Errorf("docs/interface has no line of %s", event.Name)
		}
	}
}

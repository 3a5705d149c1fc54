package events

import (
	"os"
	"strings"
	"testing"
)

// The interface's page describes every event of the stream.
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

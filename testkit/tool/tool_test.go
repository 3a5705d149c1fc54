package tool

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// ended is how a test ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper() {}

func (e *ended) Fatal(...any) { e.how = "failed"; runtime.Goexit() }

func (e *ended) Fatalf(string, ...any) { e.how = "refused"; runtime.Goexit() }

func (e *ended) Skipf(string, ...any) { e.how = "skipped"; runtime.Goexit() }

// The last line of make test tells of every tool.
func TestToolsAreTold(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range told {
		if !strings.Contains(string(text), "$(if $(shell command -v "+name+"),,") {
			t.Errorf("LEFT_OUT does not name %s", name)
		}
	}
}

func TestWhatIsMissingFailsInCIAlone(t *testing.T) {
	need := func(name string) string {
		e := &ended{how: "went on"}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Need(e, name)
		}()
		<-done
		return e.how
	}
	if got := need("no-such-program"); got != "refused" {
		t.Errorf("a test that needs what nobody is told of %s", got)
	}
	told = append(told, "no-such-program", "go")
	for ci, want := range map[string]string{"": "skipped", "bare": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		if got := need("no-such-program"); got != want {
			t.Errorf("CI=%q: it %s, want %s", ci, got, want)
		}
		if got := need("go"); got != "went on" {
			t.Errorf("CI=%q: a test whose program is there %s", ci, got)
		}
	}
}

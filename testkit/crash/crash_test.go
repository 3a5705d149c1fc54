package crash

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestWithoutVariablesNothingHappens(t *testing.T) {
	point := FromEnv(env(nil))
	for range 3 {
		point("any.point")
	}
}

func TestPoison(t *testing.T) {
	panics := func(poison, address string) (did bool) {
		defer func() { did = recover() != nil }()
		PoisonFromEnv(env(map[string]string{Poison: poison}))(address)
		return false
	}
	if panics("", "") || panics("", "http://a.test/") ||
		panics("http://a.test/", "http://a.test/b") {
		t.Error("another page is poisoned")
	}
	if !panics("http://a.test/", "http://a.test/") {
		t.Error("the poisoned page is read")
	}
}

func TestTheNthPassKills(t *testing.T) {
	for at, want := range map[string]int{"a.b": 1, "a.b:1": 1, "a.b:3": 3} {
		p, passed, died := &points{}, 0, 0
		p.name, p.left = parse(at)
		p.die = func() { died = passed }
		for range 5 {
			p.pass("a.c")
			passed++
			p.pass("a.b")
		}
		if died != want {
			t.Errorf("%s killed at pass %d, want %d", at, died, want)
		}
	}
}

func TestSenselessValuesPanic(t *testing.T) {
	for _, at := range []string{"a.b:", "a.b:0", "a.b:-1", "a.b:x", ":3"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", at)
				}
			}()
			FromEnv(env(map[string]string{At: at}))
		}()
	}
}

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	point := FromEnv(env(map[string]string{Trace: file}))
	for _, name := range []string{"one", "two", "one"} {
		point(name)
	}
	content, err := os.ReadFile(file)
	if err != nil || string(content) != "one\ntwo\none\n" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestTheProcessDies runs this test again as a child that passes a point.
func TestTheProcessDies(t *testing.T) {
	if os.Getenv(At) != "" {
		defer os.Stdout.WriteString("deferred calls ran")
		FromEnv(os.Getenv)("child.point")
		os.Stdout.WriteString("the point was survived")
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestTheProcessDies$")
	child.Env = append(os.Environ(), At+"=child.point")
	output, err := child.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the child ended with %v: %s", err, output)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL ||
		strings.Contains(string(output), "ran") {
		t.Errorf("the child ended with %v: %s", exit, output)
	}
}

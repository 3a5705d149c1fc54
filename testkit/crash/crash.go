// Package crash ends the process at a named point like a power cut, or makes the reading of a page
// panic. A harness then inspects what is left. It owns the environment variables that say where.
// The names of the points belong to the code that passes them.
package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The environment variables. They are for tests only and not in any help text.
const (
	// At is NAME or NAME:N: the process kills itself when it passes the point for the N-th time
	// (the first).
	At = "SHOAL_CRASH_AT"
	// Trace is a file to which every passed point appends its name as a line.
	Trace = "SHOAL_CRASH_TRACE"
	// Poison is the address of a page: reading it panics.
	Poison = "SHOAL_POISON"
)

// PoisonFromEnv makes the function that is called with each page's address as it is read.
func PoisonFromEnv(getenv func(string) string) func(address string) {
	poison := getenv(Poison)
	return func(address string) {
		if poison != "" && address == poison {
			panic(fmt.Sprintf("crash: %s=%s", Poison, poison))
		}
	}
}

// FromEnv makes the function that points call. Without the variables it does nothing. An invalid
// variable panics, so that a run without a crash is never taken for one that survived it.
func FromEnv(getenv func(string) string) func(name string) {
	at, trace := getenv(At), getenv(Trace)
	if at == "" && trace == "" {
		return func(string) {}
	}
	p := &points{die: killSelf}
	if at != "" {
		p.name, p.left = parse(at)
	}
	if trace != "" {
		file, err := os.OpenFile(trace, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			panic(fmt.Sprintf("crash: %s: %v", Trace, err))
		}
		p.trace = file
	}
	return p.pass
}

func parse(at string) (name string, n int) {
	name, count, found := strings.Cut(at, ":")
	if !found {
		return name, 1
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || name == "" {
		panic(fmt.Sprintf("crash: %s=%q: want NAME or NAME:N with N from 1", At, at))
	}
	return name, n
}

// points counts passes. One lock makes the count exact over all goroutines.
type points struct {
	mu    sync.Mutex
	name  string
	left  int
	trace *os.File
	die   func()
}

func (p *points) pass(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trace != nil {
		if _, err := p.trace.WriteString(name + "\n"); err != nil {
			panic(fmt.Sprintf("crash: %s: %v", Trace, err))
		}
	}
	if name != p.name || p.left == 0 {
		return
	}
	p.left--
	if p.left == 0 {
		p.die()
	}
}

// killSelf does not return: neither deferred calls nor exit hooks run.
func killSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("crash: kill: %v", err))
	}
	select {}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// shell is a data directory with its service, and a command line on it.
type shell struct {
	t    *testing.T
	api  *apitest.Server
	data string
	in   string
	// typed, if set, is read in place of in.
	typed io.Reader
	run   func(context.Context, service.Config) error
	// said, if set, is called with all of err whenever more is written.
	said func(string)
}

// errs receives the notices of commands.
type errs struct {
	bytes.Buffer
	said func(string)
}

func (e *errs) Write(p []byte) (int, error) {
	n, err := e.Buffer.Write(p)
	if e.said != nil {
		e.said(e.String())
	}
	return n, err
}

func (e *errs) WriteString(text string) (int, error) { return e.Write([]byte(text)) }

func newShell(t *testing.T) *shell {
	t.Setenv("PATH", "") // no browser, even if the machine has one
	b := &shell{t: t, api: apitest.New(t)}
	b.data = b.api.DataDir(t)
	return b
}

func (b *shell) write(name, content string) string {
	path := filepath.Join(b.data, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

func (b *shell) shoal(args ...string) result {
	return b.shoalIn(context.Background(), args...)
}

func (b *shell) shoalIn(ctx context.Context, args ...string) result {
	b.t.Helper()
	b.t.Setenv("SHOAL_DATA", b.data)
	var out bytes.Buffer
	notices := errs{said: b.said}
	code := run(ctx, args, terminal.Terminal{
		In: b.input(), Out: &out, Err: &notices, Clock: apitest.Impatient{},
	}, b.run)
	return result{code: code, out: out.String(), err: notices.String()}
}

// input is what is typed: in, or typed if set.
func (b *shell) input() io.Reader {
	if b.typed != nil {
		return b.typed
	}
	return strings.NewReader(b.in)
}

// wantJSON requires success, and the server's answer on standard output with nothing beside it.
func (r result) wantJSON(t *testing.T, answer any) {
	t.Helper()
	r.want(t, terminal.ExitOK)
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(text, &want),
		json.Unmarshal([]byte(r.out), &got)); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(- wanted):\n%s", diff)
	}
}

// want fails the test unless the command ended with the code, and each text is in out or err.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	if t.Failed() {
		t.Fatalf("out:\n%s\nerr:\n%s", r.out, r.err)
	}
}

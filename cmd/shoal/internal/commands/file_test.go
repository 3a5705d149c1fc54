//go:build unix

package commands

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// TestFilesKeepTheirMode: the umask applies to a new file, and a replaced one keeps its mode.
func TestFilesKeepTheirMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	path := filepath.Join(t.TempDir(), "rows.csv")
	for _, c := range []struct{ before, asked, want fs.FileMode }{
		{0, shared, 0o640}, {0, private, 0o600}, {0o664, shared, 0o664}, {0o600, shared, 0o600},
		{0o644, private, 0o644},
	} {
		_ = os.Remove(path)
		if c.before != 0 {
			err := os.WriteFile(path, nil, 0o600)
			if err = errors.Join(err, os.Chmod(path, c.before)); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeFile(path, c.asked, text("a")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != c.want {
			t.Errorf("%v asked where there was %v: %v, %v", c.asked, c.before, info.Mode(), err)
		}
	}
}

// TestFilesThatAreNone: a link stays a link, and a device and a pipe get the output.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink("target", link),
		writeFile(link, shared, text("new")))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "new" {
		t.Errorf("the link's file has %q, %v", got, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "target" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		read, err := os.ReadFile(pipe)
		got <- string(read)
		if err != nil {
			t.Error(err)
		}
	}()
	if err := writeFile(pipe, shared, text("piped")); err != nil {
		t.Fatal(err)
	}
	if read := <-got; read != "piped" {
		t.Errorf("the pipe has %q", read)
	}
	if err := writeFile(os.DevNull, shared, text("a")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", os.DevNull, info.Mode(), err)
	}
	if err := writeFile(dir, shared, text("a")); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory is written: %v", err)
	}
	broken := errors.New("broken")
	err = writeFile(target, shared, func(io.Writer) error { return broken })
	if left, _ := os.ReadDir(dir); !errors.Is(err, broken) || len(left) != 3 {
		t.Errorf("%v leaves %v", err, left)
	}
}

// What is paid for before it is written needs an existing folder.
func TestCheckPlace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, good := range map[string]bool{"": true, standard: true, "here.csv": true, file: true,
		filepath.Join(dir, "new"): true, filepath.Join(dir, "none", "x.csv"): false,
		filepath.Join(file, "x.csv"): false} {
		if err := checkPlace(path); (err == nil) != good {
			t.Errorf("%q: %v", path, err)
		}
	}
}

package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Modes of new files. The process's umask restricts them further.
const (
	shared  fs.FileMode = 0o666
	private fs.FileMode = 0o600 // for operators' files
)

// checkPlace fails if a file's folder is missing, before anything is paid.
func checkPlace(path string) error {
	if path == "" || path == standard {
		return nil
	}
	at, err := os.Stat(filepath.Dir(path))
	if err == nil && !at.IsDir() {
		err = fmt.Errorf("%s is no folder", filepath.Dir(path))
	}
	if err != nil {
		return terminal.Usagef("-o: %v", err)
	}
	return nil
}

// writeTo writes to a file, which appears once it is complete, or to the terminal's output if path
// is "".
func writeTo(t *terminal.Terminal, path string, write func(io.Writer) error) error {
	return writeAs(t, path, shared, write)
}

// writeAs is writeTo with the mode of a new file.
func writeAs(t *terminal.Terminal, path string, mode fs.FileMode,
	write func(io.Writer) error) error {
	if path != "" && path != standard {
		return writeFile(path, mode, write)
	}
	return fill(t.Out, write)
}

// writeFile writes a file, which appears once it is complete, and keeps the mode of a file that it
// replaces. A link stays a link. A device or a pipe gets the output directly.
func writeFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	old, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !old.Mode().IsRegular():
		device, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(device, write), device.Close())
	default:
		mode = old.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	part := path + "." + uuid.NewString() + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part) }() // a complete file has been renamed by then
	if old != nil {
		err = file.Chmod(mode) // the umask has narrowed it
	}
	if err == nil {
		err = fill(file, write)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s is not written: %w", path, err)
	}
	return os.Rename(part, path)
}

// fill buffers the writes.
func fill(to io.Writer, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(to, 256<<10)
	if err := write(out); err != nil {
		return errors.Join(err, out.Flush())
	}
	return out.Flush()
}

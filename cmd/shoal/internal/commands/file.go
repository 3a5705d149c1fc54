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

// Who may read a file that there was none of. What the process lets nobody do counts, too (umask).
const (
	shared  fs.FileMode = 0o666
	private fs.FileMode = 0o600 // of operators' files
)

// checkPlace refuses a file that cannot be written for want of its folder, before anything is paid.
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

// writeTo has something written to a file, which appears when it is whole, or to the terminal's
// output when path is "".
func writeTo(t *terminal.Terminal, path string, write func(io.Writer) error) error {
	return writeAs(t, path, shared, write)
}

// writeAs is writeTo that says who may read the file.
func writeAs(t *terminal.Terminal, path string, mode fs.FileMode,
	write func(io.Writer) error) error {
	if path != "" && path != standard {
		return writeFile(path, mode, write)
	}
	return fill(t.Out, write)
}

// writeFile has something written to a file, which appears when it is whole, and keeps the mode of
// the one that it replaces. A link stays one. A device or a pipe gets all as it comes.
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
	defer func() { _ = os.Remove(part) }() // it has its name by then, or is not whole
	if old != nil {
		err = file.Chmod(mode) // which the umask has narrowed
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

// fill writes in large pieces.
func fill(to io.Writer, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(to, 256<<10)
	if err := write(out); err != nil {
		return errors.Join(err, out.Flush())
	}
	return out.Flush()
}

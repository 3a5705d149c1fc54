package telemetry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// LogFile is a process's log in its data directory: shoal.log, and older in shoal.log.1 etc.
type LogFile struct {
	path  string
	most  int64
	files int

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLogFile opens the directory's log for appending. It keeps files files, at least one, of at
// most most bytes each.
func OpenLogFile(dir string, most int64, files int) (*LogFile, error) {
	l := &LogFile{path: filepath.Join(dir, "shoal.log"), most: most, files: files}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return l, nil
}

func (l *LogFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write adds a line. A line that no longer fits begins a new file.
func (l *LogFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		if err := errors.Join(l.file.Close(), l.rotate(), l.open()); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// rotate renames each file to the next older one. The oldest goes.
func (l *LogFile) rotate() error {
	if l.files == 1 {
		return os.Remove(l.path)
	}
	for n := l.files - 1; n > 0; n-- {
		err := os.Rename(l.name(n-1), l.name(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// name returns the name of the file after n rotations.
func (l *LogFile) name(n int) string {
	if n == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, n)
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

package telemetry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// MaxLogBytes bounds the log file: at that size it becomes shoal.log.1, whose own end that is.
const MaxLogBytes = 64 << 20

// LogFile is a process's log in its data directory, at most two files.
type LogFile struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLogFile opens the directory's log to add to it; each of its files has at most most bytes.
func OpenLogFile(dir string, most int64) (*LogFile, error) {
	l := &LogFile{path: filepath.Join(dir, "shoal.log"), most: most}
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

// Write adds a line. A line that does not fit any more begins a new file.
func (l *LogFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"),
			l.open()); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

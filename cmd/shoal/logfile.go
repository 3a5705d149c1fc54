package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// maxLogBytes bounds the log file: at that size it becomes shoal.log.1, whose own end that is.
const maxLogBytes = 64 << 20

// logFile is the service's log in its data directory, at most two files of maxLogBytes.
type logFile struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLogFile opens the directory's log to add to it.
func openLogFile(dir string, most int64) (*logFile, error) {
	l := &logFile{path: filepath.Join(dir, "shoal.log"), most: most}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return l, nil
}

func (l *logFile) open() error {
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
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"), l.open()); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

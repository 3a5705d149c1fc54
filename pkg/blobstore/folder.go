package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// Suffixes of the library's own files: of blobs without a name yet, and of attributes, which we do
// not write.
const (
	unfinished = ".tmp"
	attributes = ".attrs"
)

// errShared is the error for a directory that another process holds.
var errShared = errors.New("another process keeps its blobs there")

// OpenDirectory opens blobs in a directory, and creates it if needed. Only one process may use it.
// It removes unfinished blobs that a killed process has left.
func OpenDirectory(dir string) (*Store, error) { return openDirectory(dir, disk{}) }

// openDirectory opens blobs in a directory on a given disk.
func openDirectory(dir string, on syncing) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blobstore: %w", err)
	}
	f := &folder{dir: dir, disk: on}
	if err := f.lock(); err != nil {
		return nil, fmt.Errorf("blobstore: %s: %w", dir, err)
	}
	if err := f.clear(); err != nil {
		return nil, errors.Join(fmt.Errorf("blobstore: %w", err), f.close())
	}
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, DirFileMode: 0o700,
		Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("blobstore: %w", err), f.close())
	}
	return &Store{bucket: bucket, folder: f, release: f.close}, nil
}

// folder makes durable what the library, which never syncs, writes into a directory.
type folder struct {
	dir  string
	disk syncing
	held *os.File // its lock keeps other processes out

	// names is locked while a name is removed, since the library's list fails on a vanishing name.
	names sync.RWMutex
}

// syncing makes writes durable. A test's version forgets unsynced ones.
type syncing interface {
	file(f *os.File) error
	directory(path string) error
}

// disk is the real disk.
type disk struct{}

func (disk) file(f *os.File) error { return f.Sync() }

func (disk) directory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (f *folder) lock() (err error) {
	if f.held, err = os.Open(f.dir); err != nil {
		return err
	}
	err = syscall.Flock(int(f.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errShared
	}
	if err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

func (f *folder) close() error { return f.held.Close() }

// clear removes unfinished blobs: nobody writes them any more.
func (f *folder) clear() error {
	for _, kind := range Kinds() {
		root := filepath.Join(f.dir, kind.Name)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, unfinished) {
				return err
			}
			return os.Remove(path)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// staged is the file of a blob before it has its name.
type staged struct{ file *os.File }

// takeFile takes the file from the library.
func (s *staged) takeFile(as func(any) bool) error {
	if !as(&s.file) {
		return errors.New("the library shows no file")
	}
	return nil
}

// publish makes a written blob's bytes durable, then gives it its name, and makes the name durable.
func (f *folder) publish(s *staged, key Key, w *blob.Writer, giveUp context.CancelFunc) error {
	if err := f.disk.file(s.file); err != nil {
		giveUp()
		return errors.Join(err, w.Close())
	}
	f.names.Lock()
	err := w.Close()
	f.names.Unlock()
	if err != nil {
		return err
	}
	return f.sync(key)
}

// remove removes a blob's name for good.
func (f *folder) remove(key Key, remove func() error) error {
	f.names.Lock()
	err := remove()
	f.names.Unlock()
	if err != nil {
		return err
	}
	if err := f.sync(key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // nobody has written there
}

// sync makes the names from a key's folder up durable, since all these folders may be new.
func (f *folder) sync(key Key) error {
	for path := filepath.FromSlash(key.String()); path != "."; {
		path = filepath.Dir(path)
		if err := f.disk.directory(filepath.Join(f.dir, path)); err != nil {
			return err
		}
	}
	return nil
}

// reading keeps names from being removed until done is called.
func (f *folder) reading() (done func()) {
	f.names.RLock()
	return f.names.RUnlock
}

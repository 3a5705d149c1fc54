// Package blobstore stores bytes that are too large for a command and are not rows: backups,
// uploads in flight, kept page bodies. They are in a directory, or in a store that speaks S3. The
// package owns their names, bounds, lifetimes and durability. It does not know who refers to a
// blob, and so which blobs are orphans. The caller of a sweep does.
package blobstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Errors of blobs. Other errors are the store's: it is unreachable, full or refuses.
var (
	ErrNotFound = errors.New("no such blob")
	ErrTooLarge = errors.New("the blob is larger than its kind may be")
	ErrBadKey   = errors.New("not a key of a blob")
)

// Bounds of each call.
const (
	// pageBlobs is the most blobs in a page of a list.
	pageBlobs = 1000
	// partBytes is the size of one part of a multipart upload. Servers take at most 10,000 parts.
	partBytes = 8 << 20
	// partsAtOnce is the most parts of one blob in memory.
	partsAtOnce = 2
)

// Digest is the SHA-256 of a blob.
type Digest = [sha256.Size]byte

// Info is what the store knows of a blob without reading it.
type Info struct {
	Key     Key
	Bytes   int64
	Written time.Time // by the store's clock
}

// Written describes what a Put wrote.
type Written struct {
	Bytes  int64
	Digest Digest
}

// Page is a part of a list.
type Page struct {
	Blobs []Info // at most 1,000
	// Next is where the list continues; nil: at its end. A page before the end may be empty.
	Next []byte
}

// Store keeps blobs. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	// folder makes a directory durable; nil: a server's reply means that a blob is durable.
	folder *folder
	// release releases what is below the library.
	release func() error
}

// Close ends the store. Nobody may use it any more.
func (s *Store) Close() error { return errors.Join(s.bucket.Close(), s.release()) }

// Put writes a complete blob, and returns once it is durable. Until then nobody sees any of it. It
// replaces an existing blob with the key. A blob longer than its kind allows is ErrTooLarge. After
// any error, the old blob is there, or the new one, or none if there was none.
func (s *Store) Put(ctx context.Context, key Key, from io.Reader) (Written, error) {
	if err := key.check(); err != nil {
		return Written{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: partBytes,
		MaxConcurrency: partsAtOnce}
	var staged staged
	if s.folder != nil {
		options.BeforeWrite = staged.takeFile
	}
	w, err := s.bucket.NewWriter(ctx, key.String(), options)
	if err != nil {
		return Written{}, fmt.Errorf("blobstore: write %s: %w", key, err)
	}
	sum := measured{hash: sha256.New()}
	limited := &io.LimitedReader{R: from, N: key.Kind.MaxBytes + 1}
	_, err = io.Copy(io.MultiWriter(w, &sum), limited)
	if err == nil && limited.N == 0 {
		err = ErrTooLarge
	}
	if err != nil {
		cancel() // so that Close discards what was written
		_ = w.Close()
		return Written{}, fmt.Errorf("blobstore: write %s: %w", key, err)
	}
	if s.folder != nil {
		err = s.folder.publish(&staged, key, w, cancel)
	} else {
		err = w.Close()
	}
	if err != nil {
		return Written{}, fmt.Errorf("blobstore: write %s: %w", key, err)
	}
	written := Written{Bytes: sum.bytes}
	sum.hash.Sum(written.Digest[:0])
	return written, nil
}

// measured computes the length and the digest of what is written to it.
type measured struct {
	hash  hash.Hash
	bytes int64
}

func (m *measured) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	return m.hash.Write(p)
}

// Open reads length bytes of a blob from a byte on, or fewer if the blob ends before. A negative
// length reads the rest. The caller closes the reader, which ends with ctx. Errors: ErrNotFound.
func (s *Store) Open(ctx context.Context, key Key, from, length int64) (io.ReadCloser, error) {
	if err := key.check(); err != nil {
		return nil, err
	}
	if from < 0 {
		return nil, fmt.Errorf("blobstore: read %s: from byte %d", key, from)
	}
	r, err := s.bucket.NewRangeReader(ctx, key.String(), from, length, nil)
	if err != nil {
		return nil, failed("read", key, err)
	}
	return r, nil
}

// Stat returns information about the blob with a key. Errors: ErrNotFound.
func (s *Store) Stat(ctx context.Context, key Key) (Info, error) {
	if err := key.check(); err != nil {
		return Info{}, err
	}
	a, err := s.bucket.Attributes(ctx, key.String())
	if err != nil {
		return Info{}, failed("look at", key, err)
	}
	return Info{Key: key, Bytes: a.Size, Written: a.ModTime}, nil
}

// Delete removes a blob for good. A missing blob is not an error.
func (s *Store) Delete(ctx context.Context, key Key) error {
	if err := key.check(); err != nil {
		return err
	}
	remove := func() error {
		err := s.bucket.Delete(ctx, key.String())
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil
		}
		return err
	}
	var err error
	if s.folder != nil {
		err = s.folder.remove(key, remove)
	} else {
		err = remove()
	}
	if err != nil {
		return failed("remove", key, err)
	}
	return nil
}

// List returns a page of the blobs of a kind, or only of one owner unless owner is "". It begins at
// an earlier page's Next, or at the first blob. An owner's blobs come in the order of their ids.
// Blobs written or removed meanwhile may be included or not.
func (s *Store) List(ctx context.Context, kind Kind, owner string, next []byte) (Page, error) {
	prefix := kind.Name + "/"
	if owner != "" {
		prefix += escape(owner) + "/"
	}
	if next == nil {
		next = blob.FirstPageToken
	}
	if s.folder != nil {
		defer s.folder.reading()()
	}
	objects, after, err := s.bucket.ListPage(ctx, next, pageBlobs,
		&blob.ListOptions{Prefix: prefix})
	if err != nil {
		return Page{}, fmt.Errorf("blobstore: list %s: %w", prefix, err)
	}
	page := Page{Next: after}
	if len(after) == 0 {
		page.Next = nil
	}
	for _, o := range objects {
		if key, ok := parse(kind, o.Key); ok { // other objects are not ours
			page.Blobs = append(page.Blobs, Info{Key: key, Bytes: o.Size, Written: o.ModTime})
		}
	}
	return page, nil
}

// failed returns the error of a call.
func failed(what string, key Key, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = ErrNotFound
	}
	return fmt.Errorf("blobstore: %s %s: %w", what, key, err)
}

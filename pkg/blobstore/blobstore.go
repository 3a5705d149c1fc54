// Package blobstore owns bytes that are too large for a command and no rows: backups, uploads in
// flight, kept page bodies. They are in a directory, or in any store that speaks S3. It owns their
// names, bounds, lifetimes and durability. It does not know who names a blob, and so does not know
// which are orphans. The caller that sweeps says so.
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

// What can be wrong with a blob. Other errors are the store's: it is away, full or refuses.
var (
	ErrNotFound = errors.New("no such blob")
	ErrTooLarge = errors.New("the blob is larger than its kind may be")
	ErrBadKey   = errors.New("not a key of a blob")
)

// Bounds of each call.
const (
	// pageBlobs is how many blobs a page of a list has at most.
	pageBlobs = 1000
	// partBytes is what a part of a blob holds that goes to a server in parts. A server takes
	// 10,000 parts at most.
	partBytes = 8 << 20
	// partsAtOnce bounds the parts of one blob in memory.
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

// Written is what a Put has written.
type Written struct {
	Bytes  int64
	Digest Digest
}

// Page is a part of a list.
type Page struct {
	Blobs []Info // at most 1,000
	// Next is where the list goes on; nil: this was its end. A page may be empty before the end.
	Next []byte
}

// Store keeps blobs. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	// folder makes durable what is in a directory; nil: a server answers when a blob is durable.
	folder *folder
	// release gives back what lies below the library.
	release func() error
}

// Close ends the store, once nobody uses it.
func (s *Store) Close() error { return errors.Join(s.bucket.Close(), s.release()) }

// Put writes a blob to its end, and makes it durable before it answers. Until then nobody sees any
// of it. A blob that was there under the key is replaced. What is longer than its kind may be is
// ErrTooLarge. After any error the old blob is there, or the new one, or none if none was.
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
		cancel() // so that closing gives up what was written
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

// measured is the length and the digest of what is written to it.
type measured struct {
	hash  hash.Hash
	bytes int64
}

func (m *measured) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	return m.hash.Write(p)
}

// Open reads a blob from a byte on, so many bytes of it; fewer if it ends before. A length below 0
// is all that follows. The caller closes the reader, which ends with ctx. Errors: ErrNotFound.
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

// Stat says what there is under a key. Errors: ErrNotFound.
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

// Delete removes a blob for good. One that is not there is no error.
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

// List is a page of the blobs of a kind, or of one owner's unless owner is "". It begins where an
// earlier page's Next says, or at the first blob. An owner's blobs come in the order of their ids.
// What is written or removed meanwhile may be in it or not.
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
		if key, ok := parse(kind, o.Key); ok { // what is none is not ours
			page.Blobs = append(page.Blobs, Info{Key: key, Bytes: o.Size, Written: o.ModTime})
		}
	}
	return page, nil
}

// failed is the error of a call.
func failed(what string, key Key, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = ErrNotFound
	}
	return fmt.Errorf("blobstore: %s %s: %w", what, key, err)
}

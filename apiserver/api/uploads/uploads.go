// Package uploads owns the operations with which customers upload files (specification 4.9). It
// decides which files are accepted, and brings them to the blob store. Package upload reads files;
// the ingest role stores their rows in the background.
package uploads

import (
	"context"
	"io"
	"time"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/upload"
)

const group = "File uploads"

// answerTime is the time-out of everything after the arrival of a file.
const answerTime = 5 * time.Minute

// Blobs stores files until they are imported.
type Blobs interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key blobstore.Key) error
	List(ctx context.Context, kind blobstore.Kind, owner string, next []byte) (blobstore.Page,
		error)
}

// Resource has the operations on uploads and their dependencies.
type Resource struct {
	Client client.Client
	Store  client.ReadsRows
	Blobs  Blobs // nil: files are refused
	Clock  clock.Clock
	IDs    ids.Source
	Plans  *plans.Source
	// Node and Boot identify this process in claims of idempotency keys.
	Node string
	Boot ids.ID
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	admit := places(make(chan struct{}, upload.MaxJSONBodies))
	return []*operation.Operation{r.create(admit), r.send(admit), r.putPart(),
		r.getParts(), r.putCatalogue(admit), r.catalogue()}
}

// places limits JSON bodies that have arrived; each is in memory, also decoded.
type places chan struct{}

// admit takes a place. Bodies that are still arriving hold none, so slow senders block nobody.
func (p places) admit() (leave func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	default:
		return nil, fault.New(fault.IngestCapacityGlobal,
			"%d JSON uploads are under way; try again later, or send the file itself",
			upload.MaxJSONBodies)
	}
}

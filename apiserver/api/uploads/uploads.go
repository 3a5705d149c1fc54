// Package uploads owns the operations by which customers upload files (specification 4.9): which
// ones are taken, and how they come to the blob store. How a file is read is pkg/upload's, and its
// rows are stored by background work of the role ingest.
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

// answerTime is for everything behind the coming of a file.
const answerTime = 5 * time.Minute

// Blobs is where files are until they are imported.
type Blobs interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key blobstore.Key) error
	List(ctx context.Context, kind blobstore.Kind, owner string, next []byte) (blobstore.Page,
		error)
}

// Resource is the operations on uploads, and what they use.
type Resource struct {
	Client client.Client
	Store  client.ReadsRows
	Blobs  Blobs // nil: no files are taken
	Clock  clock.Clock
	IDs    ids.Source
	Plans  *plans.Source
	// Node and Boot name this process in claims of idempotency keys.
	Node string
	Boot ids.ID
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	admit := places(make(chan struct{}, upload.MaxJSONBodies))
	return []*operation.Operation{r.create(admit), r.send(admit), r.putPart(),
		r.getParts(), r.putCatalogue(admit), r.catalogue()}
}

// places are for JSON bodies that have come: each is in memory, decoded, too.
type places chan struct{}

// admit takes a place. Nobody's slow sending keeps others from one: it has none.
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

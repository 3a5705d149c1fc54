package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

const (
	// keepingTries is how many attempts to write a file fail before its export fails.
	keepingTries = 5
	// shortRests is the pause between attempts while disks are short.
	shortRests = 10 * time.Second
)

// room is where an export buffers what it cannot write yet.
type room struct {
	dir  string
	disk *telemetry.Disk
}

// Dir implements export.Disk.
func (r room) Dir() string { return r.dir }

// TakeRoom implements export.Disk. Its fault is out_of_space.
func (r room) TakeRoom(int64) error {
	if r.disk.Short() {
		return fault.New(fault.OutOfSpace, "the disk has too little room for this file")
	}
	return nil
}

// Keeping is a kind of background work: it writes kept exports. It writes each file under a new
// name, and then one command assigns it to the export. Files of repeated or concurrent attempts are
// deleted. It calls point at "work.export.before_put", "work.export.after_put" and
// "work.export.after_end", so that tests can end the process there.
func (r Resource) Keeping(point func(name string)) work.Kind {
	k := keeping{r, point}
	return work.Kind{Name: work.Export, AtOnce: 2, Held: 8, PerCustomer: 1,
		Ready: func() bool { return r.Blobs != nil },
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := k.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("keep an export: %w", err)
			}
			return outcome, nil
		}}
}

type keeping struct {
	Resource
	point func(name string)
}

func (k *keeping) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	view, err := k.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	e := view.Export(item.ID)
	if e == nil || e.State != client.ExportWaiting {
		return work.Done(), nil // it was dropped, or another owner has finished it
	}
	if view.IsShort() {
		return work.Rest(nil, shortRests), nil
	}
	if refused := k.revoked(view, e); refused != nil {
		return k.fail(ctx, e, refused)
	}
	end, err := k.write(ctx, view, e)
	var final *fault.Error
	switch {
	case errors.Is(err, blobstore.ErrTooLarge):
		return k.fail(ctx, e, fault.New(fault.ExportTooLarge, "a kept file has at most %d GiB",
			blobstore.Exports.MaxBytes>>30))
	case errors.As(err, &final) && final.Code == fault.OutOfSpace:
		return work.Rest(nil, shortRests), nil
	case errors.As(err, &final) && fault.Lookup(final.Code).Status < 500:
		return k.fail(ctx, e, final)
	case err != nil && item.Failures+1 >= keepingTries && ctx.Err() == nil:
		outcome, failed := k.fail(ctx, e, fault.New(fault.Internal, "the rows cannot be written"))
		if failed != nil {
			err = errors.Join(err, failed)
			return outcome, err
		}
		return outcome, nil
	case err != nil:
		return work.Outcome{}, err
	}
	return k.end(ctx, e, end)
}

// fail records that an export will never be ready.
func (k *keeping) fail(ctx context.Context, e *client.Export, why *fault.Error) (work.Outcome,
	error) {
	detail := why.Detail
	if detail == "" {
		detail = fault.Lookup(why.Code).Title
	}
	return k.end(ctx, e, client.EndExport{ID: e.ID, Code: string(why.Code), Detail: detail})
}

// end records the end of an export. It deletes the new file if the export has another one.
func (k *keeping) end(ctx context.Context, e *client.Export, end client.EndExport) (work.Outcome,
	error) {
	stands, err := client.Do(ctx, k.Client, end, nil)
	k.point("work.export.after_end")
	if err != nil && fault.CodeOf(err) != fault.NotFound { // NotFound: it was dropped meanwhile
		return work.Outcome{}, err
	}
	if !end.Blob.IsZero() && stands.Blob != end.Blob {
		if err := k.Blobs.Delete(ctx, keyOf(e, end.Blob)); err != nil {
			return work.Outcome{}, err
		}
	}
	return work.Done(), nil
}

// revoked returns why an export may no longer be written, nil if it may.
func (k *keeping) revoked(v *client.View, e *client.Export) *fault.Error {
	if !e.Key.IsZero() && v.Key(e.Key) == nil && v.Grant(e.Key) == nil {
		return fault.New(fault.Unauthorized, "the key that asked for it was revoked")
	}
	return mayNot(v, e)
}

// write writes the rows to a file of the blob store, while they may be read.
func (k *keeping) write(ctx context.Context, v *client.View,
	e *client.Export) (end client.EndExport, err error) {
	var asked keptRequest
	if err := json.Unmarshal(e.Request, &asked); err != nil {
		return end, err
	}
	end = client.EndExport{ID: e.ID, Blob: k.IDs.New()}
	rows, options, err := k.source(ctx, v, e, &asked, &end.Rows)
	if err != nil {
		return end, err
	}
	k.point("work.export.before_put")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, written := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("export panicked: %v\n%s", r, debug.Stack())
			}
			_ = written.CloseWithError(err) // it never fails
			failed <- err
		}()
		err = export.Write(ctx, written, rows, options)
	}()
	blob, err := k.Blobs.Put(ctx, keyOf(e, end.Blob), read)
	_ = read.CloseWithError(io.ErrClosedPipe) // ends the writer, too
	if wrote := <-failed; wrote != nil && !errors.Is(wrote, io.ErrClosedPipe) {
		err = wrote
	}
	k.point("work.export.after_put")
	end.Bytes, end.Digest = blob.Bytes, blob.Digest[:]
	return end, err
}

// source returns the rows of an export and how to write them. It counts the rows in count, and
// fails once they may no longer be read.
func (k *keeping) source(ctx context.Context, v *client.View, e *client.Export, asked *keptRequest,
	count *int64) (export.Source, export.Options, error) {
	o := export.Options{Format: asked.Format, BOM: asked.BOM, Unguarded: !asked.Guard,
		Disk: room{k.Dir, k.Disk}}
	from := &operation.Caller{Principal: auth.Principal{Customer: e.Customer}, View: v}
	scope, _, err := asked.scope(ctx, k.History, from)
	if err != nil {
		return nil, o, err
	}
	var named []*client.Category
	for _, filters := range asked.Named {
		named = append(named, &client.Category{Filters: filters})
	}
	sort, err := asked.sorted()
	if err != nil {
		return nil, o, err
	}
	q := rowstore.ScanQuery{Bytes: exportBytes, Upto: asked.Upto}
	if q.Filter, err = where(named, asked.Filters); err != nil {
		return nil, o, err
	}
	scopes, err := asked.pinned(ctx, k.History, from, scope)
	if err != nil {
		return nil, o, err
	}
	if o.Members, err = asked.members(); err != nil {
		return nil, o, err
	}
	if o.Format != export.JSONL && o.Members.Fields == nil {
		if o.First, err = asked.configured(ctx, k.History, from); err != nil {
			return nil, o, err
		}
	}
	watch := export.ResumeWatch(k.Store, scopes, asked.Upto, asked.There)
	whole := func(ctx context.Context) error {
		gone, err := watch.Gone(ctx)
		if err == nil && gone {
			err = fault.New(fault.RowsGone, "rows were removed before the file was written; ask again")
		}
		return err
	}
	if err := whole(ctx); err != nil {
		return nil, o, err
	}
	return func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		*count = 0 // finding the columns may take a separate pass
		return func(yield func([]json.RawMessage, error) bool) {
			for rows, err := range checkWhole(ctx, whole,
				readAll(ctx, k.Store, scopes, q, sort, asked.Limit)) {
				if now := k.Client.View(); err == nil {
					if refused := k.revoked(now, e); refused != nil {
						err = refused
					} else if now.Export(e.ID) == nil && now.Customer(e.Customer) != nil {
						err = fault.New(fault.NotFound, "the export was deleted")
					}
				}
				*count += int64(len(rows))
				if !yield(rows, err) || err != nil {
					return
				}
			}
		}
	}, o, nil
}

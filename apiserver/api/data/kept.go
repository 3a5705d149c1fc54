package data

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// keptFor is the lifetime of a kept export.
	keptFor = 7 * 24 * time.Hour
	// maxPinned is how many hidden runs, and how many latest runs, a kept export records. Beyond
	// that it records only a hash.
	maxPinned = 500
)

// Blobs stores the files of kept exports.
type Blobs interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key blobstore.Key) error
}

// KeptExport is a file of rows that is written in the background.
type KeptExport struct {
	ID           ids.ID             `json:"id"`
	State        client.ExportState `json:"state" doc:"WAITING until the file is written"`
	Format       export.Format      `json:"format" enum:"csv,jsonl,parquet,xlsx"`
	ScraperID    *ids.ID            `json:"scraperId"`
	GroupID      *ids.ID            `json:"groupId"`
	JobID        *ids.ID            `json:"jobId"`
	CreatedAt    api.Time           `json:"createdAt"`
	EndedAt      api.Time           `json:"endedAt" doc:"Null while WAITING"`
	ExpiresAt    api.Time           `json:"expiresAt" doc:"When the export and its file are deleted"`
	Bytes        *int64             `json:"bytes" doc:"Of the file; null unless READY"`
	Rows         *int64             `json:"rows" doc:"In the file; null unless READY"`
	SHA256       *string            `json:"sha256" doc:"Of the file; null unless READY"`
	ErrorCode    *string            `json:"errorCode" doc:"Why it FAILED, as a code for programs"`
	ErrorMessage *string            `json:"errorMessage" doc:"Why it FAILED, in words"`
}

// keptRequest is the request for an export. The state keeps it as JSON.
type keptRequest struct {
	exportRequest
	Upto   int64 // rows with a greater place came later
	There  int64 // number of rows up to that place, regardless of the filter
	Newest newest
	Hidden []byte `json:",omitempty"` // runs that were hidden from reads, pinned
	Latest []byte `json:",omitempty"` // the latest runs, pinned, if the read is of them
	// Named are the filters of the categories at the time of the call.
	Named []json.RawMessage `json:",omitempty"`
}

func newKept(e *client.Export) (KeptExport, error) {
	var asked keptRequest
	if err := json.Unmarshal(e.Request, &asked); err != nil {
		return KeptExport{}, fmt.Errorf("kept export %s: %w", e.ID, err)
	}
	named := func(id ids.ID) *ids.ID {
		if id.IsZero() {
			return nil
		}
		return &id
	}
	kept := KeptExport{ID: e.ID, State: e.State, Format: asked.Format,
		ScraperID: named(asked.ScraperID), GroupID: named(asked.GroupID),
		JobID: named(asked.JobID), CreatedAt: api.Time(e.CreatedAt),
		EndedAt: api.Time(e.EndedAt), ExpiresAt: api.Time(e.ExpiresAt)}
	switch digest := hex.EncodeToString(e.Digest); e.State {
	case client.ExportReady:
		kept.Bytes, kept.Rows, kept.SHA256 = &e.Bytes, &e.Rows, &digest
	case client.ExportFailed:
		kept.ErrorCode, kept.ErrorMessage = &e.Code, &e.Detail
	}
	return kept, nil
}

// keyOf is the blob key of an export's file.
func keyOf(e *client.Export, blob ids.ID) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Exports, Owner: e.Customer,
		ID: e.ID.String() + "-" + blob.String()}
}

// mayNot returns why an export may no longer be read, nil if it may. Its requester must still be
// able to read the rows.
func mayNot(v *client.View, e *client.Export) *fault.Error {
	if v.Customer(e.Customer).Blocked() {
		return fault.New(fault.CustomerBlocked, "the customer is blocked")
	}
	if !ownership.ReadsAll(v, e.Customer, e.Owner, e.Groups) {
		return fault.Invalid(fault.NotFound, "id", "there is no such export")
	}
	return nil
}

// ownExport returns an export of the customer, if it may read the rows. Its fault is not_found.
func ownExport(v *client.View, customer string, id ids.ID) (*client.Export, error) {
	e := v.Export(id)
	if e == nil || e.Customer != customer {
		return nil, fault.Invalid(fault.NotFound, "id", "there is no such export")
	}
	if refused := mayNot(v, e); refused != nil {
		return nil, refused
	}
	return e, nil
}

// keep is POST /api/scraper/data/exports.
func (r Resource) keep() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_keep_export", Routes: operation.Routes("POST /api/scraper/data/exports"),
		Group: group, Summary: "Writes rows to a file that is kept for 7 days",
		ToAgents: "The file has the rows as of the call. It is written in the background: its " +
			"state is WAITING, then READY or FAILED. It fails if rows are removed before it is " +
			"written.",
		Description: "The file has the rows as of the call, in the format of GET " +
			"/api/scraper/data/export. It is written in the background: its state is WAITING, " +
			"then READY or FAILED. It fails if rows are removed before it is written. It can " +
			"neither be written nor read once its creator may no longer read the rows. A " +
			"customer keeps at most 20 exports and 8 GiB of files. A file has at most 4 GiB.",
		Access: auth.Write, Agents: operation.Adds,
		Feature: plans.DataExport, Rate: limits.Read, Status: 202,
		Idempotency: operation.Optional,
		Errors: []fault.Code{fault.NotFound, fault.ScraperNotFound, fault.JobNotFound,
			fault.InvalidFilter, fault.InvalidSort, fault.LimitReached, fault.OutOfSpace,
			fault.ExportsNotKept},
	}, func(ctx context.Context, from *operation.Caller, in *exportRequest) (KeptExport, error) {
		ask, err := r.ask(ctx, from, in)
		if err != nil && !from.OnlyAnswers() {
			return KeptExport{}, err
		}
		e, err := client.Do(ctx, r.Client, ask, from.Call)
		if err != nil {
			return KeptExport{}, err
		}
		return newKept(&e)
	})
}

// ask makes the command that keeps an export of the rows as they are now. Beside an error it has
// what the answer to a repeated call is made of.
func (r Resource) ask(ctx context.Context, from *operation.Caller,
	in *exportRequest) (ask client.AskExport, err error) {
	request := keptRequest{exportRequest: *in}
	ask = client.AskExport{ID: r.IDs.New(), Customer: from.Customer,
		Kept: keptFor.Milliseconds()}
	if ask.Request, err = json.Marshal(request); err != nil {
		return ask, fmt.Errorf("kept export: %w", err)
	}
	if r.Blobs == nil {
		return ask, fault.New(fault.ExportsNotKept, "the operator of the service keeps no files")
	}
	if _, err := in.members(); err != nil {
		return ask, err
	}
	if _, err := in.sorted(); err != nil {
		return ask, err
	}
	whole, owner, err := in.scope(ctx, r.History, from)
	if err != nil {
		return ask, err
	}
	named, err := namedCategories(from.View, whole.Group, in.Categories)
	if err == nil {
		_, err = where(named, in.Filters)
	}
	if err != nil {
		return ask, err
	}
	for _, category := range named {
		request.Named = append(request.Named, category.Filters)
	}
	if request.Newest, err = newestRun(ctx, r.History, from.View, owner); err != nil {
		return ask, fmt.Errorf("newest run: %w", err)
	}
	if request.Upto, err = r.Store.Horizon(ctx); err != nil {
		return ask, fmt.Errorf("rows to export: %w", err)
	}
	scopes, err := in.scopes(ctx, r.History, from, whole, request.Newest)
	if err != nil {
		return ask, err
	}
	request.pin(from.View, scopes)
	if request.There, err = r.Store.CountUpto(ctx, scopes, request.Upto); err != nil {
		return ask, fmt.Errorf("rows to export: %w", err)
	}
	text, err := json.Marshal(request)
	if err != nil {
		return ask, fmt.Errorf("kept export: %w", err)
	}
	if len(text) > client.MaxExportRequest {
		return ask, fault.Invalid(fault.InvalidRequest, "filters",
			"what a kept export names may have %d bytes together", client.MaxExportRequest)
	}
	ask.Request, ask.Owner = text, owner
	ask.Groups = in.groups(from.View, from.Customer, whole.Group)
	if from.Key != nil {
		ask.Key = from.Key.ID
	}
	return ask, nil
}

// pin records which hidden and latest runs a read of scopes sees now.
func (in *keptRequest) pin(v *client.View, scopes []rowstore.Scope) {
	in.Hidden = pin(hiddenIn(v, scopes), maxPinned)
	if in.IsLastRun {
		var latest []ids.ID
		for _, scope := range scopes {
			latest = append(latest, scope.Jobs...)
		}
		in.Latest = pin(latest, maxPinned)
	}
}

// pinned returns the scopes as the call saw them, whichever runs are hidden or latest now. It fails
// with rows_gone if only a hash of these runs is known and the hash has changed.
func (in *keptRequest) pinned(ctx context.Context, history *client.History,
	from *operation.Caller, whole rowstore.Scope) ([]rowstore.Scope, error) {
	asOf := in.Newest
	asOf.hidden, asOf.latest = unpin(in.Hidden), unpin(in.Latest)
	scopes, err := in.scopes(ctx, history, from, whole, asOf)
	if err != nil {
		return nil, err
	}
	now := *in
	now.pin(from.View, scopes)
	if asOf.hidden == nil && !slices.Equal(in.Hidden, now.Hidden) ||
		asOf.latest == nil && !slices.Equal(in.Latest, now.Latest) {
		return nil, fault.New(fault.RowsGone,
			"others of its many runs are the latest by now, or are hidden; ask again")
	}
	hide(scopes, asOf.hidden)
	return scopes, nil
}

// keptList is GET /api/scraper/data/exports.
func (r Resource) keptList() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_kept_exports", Routes: operation.Routes("GET /api/scraper/data/exports"),
		Group: group, Summary: "Lists the customer's kept exports, newest first",
		Access: auth.Read, Agents: operation.Reads, Feature: plans.DataExport, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) ([]KeptExport, error) {
		list := []KeptExport{}
		own := from.View.Exports(from.Customer)
		for n := len(own) - 1; n >= 0; n-- {
			if mayNot(from.View, own[n]) != nil {
				continue
			}
			kept, err := newKept(own[n])
			if err != nil {
				return nil, err
			}
			list = append(list, kept)
		}
		return list, nil
	})
}

type keptIDRequest struct {
	ID ids.ID `path:"id"`
}

// kept is GET /api/scraper/data/exports/{id}.
func (r Resource) kept() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_kept_export", Routes: operation.Routes("GET /api/scraper/data/exports/{id}"),
		Group: group, Summary: "Returns the state of a kept export",
		Access: auth.Read, Agents: operation.Reads, Feature: plans.DataExport, Rate: limits.Read,
		Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *keptIDRequest) (KeptExport, error) {
		e, err := ownExport(from.View, from.Customer, in.ID)
		if err != nil {
			return KeptExport{}, err
		}
		return newKept(e)
	})
}

type keptFileRequest struct {
	ID ids.ID `path:"id"`
	operation.Part
}

// keptFile is GET /api/scraper/data/exports/{id}/file.
func (r Resource) keptFile() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_download_kept_export",
		Routes: operation.Routes("GET /api/scraper/data/exports/{id}/file"), Group: group,
		Summary: "Returns the file of a kept export, or a range of its bytes",
		Description: "Resume an interrupted download with Range, and send the ETag in If-Range " +
			"so that two files never mix. Until the export is READY the answer is 409 " +
			"export_not_ready. The answer breaks off when the caller may no longer read the " +
			"rows.",
		Access: auth.Read, Feature: plans.DataExport, Rate: limits.Read, Timeout: exportTime,
		Media: export.MediaTypes(),
		Errors: []fault.Code{fault.NotFound, fault.ExportNotReady, fault.ExportsNotKept,
			fault.RangeNotSatisfiable},
	}, func(_ context.Context, from *operation.Caller,
		in *keptFileRequest) (operation.File, error) {
		e, err := ownExport(from.View, from.Customer, in.ID)
		if err != nil {
			return operation.File{}, err
		}
		if e.State != client.ExportReady {
			return operation.File{}, fault.New(fault.ExportNotReady, "the export is %s", e.State)
		}
		if r.Blobs == nil {
			return operation.File{}, fault.New(fault.ExportsNotKept,
				"the operator of the service keeps no files")
		}
		about, err := newKept(e)
		if err != nil {
			return operation.File{}, err
		}
		return operation.File{ContentType: about.Format.MediaType(),
			Name: "rows-" + e.ID.String() + "." + string(about.Format), Bytes: e.Bytes,
			Tag: *about.SHA256, Part: in.Part,
			Write: func(ctx context.Context, w io.Writer, start, length int64) error {
				return r.copyFile(ctx, w, e, start, length)
			}}, nil
	})
}

// copyFile sends a part of an export's file, while its customer may read it.
func (r Resource) copyFile(ctx context.Context, w io.Writer, e *client.Export, start,
	length int64) error {
	file, err := r.Blobs.Open(ctx, keyOf(e, e.Blob), start, length)
	if errors.Is(err, blobstore.ErrNotFound) {
		return fault.Invalid(fault.NotFound, "id", "the file is gone")
	}
	if err != nil {
		return fmt.Errorf("kept export %s: %w", e.ID, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	for left := length; left > 0; {
		if _, err := ownExport(r.Client.View(), e.Customer, e.ID); err != nil {
			return err
		}
		n, err := io.CopyN(w, file, min(left, exportBytes))
		if err != nil {
			return fmt.Errorf("kept export %s: %w", e.ID, err)
		}
		left -= n
	}
	return nil
}

// dropKept is DELETE /api/scraper/data/exports/{id}.
func (r Resource) dropKept() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_delete_kept_export",
		Routes: operation.Routes("DELETE /api/scraper/data/exports/{id}"), Group: group,
		Summary: "Removes a kept export with its file, or cancels it",
		Access:  auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *keptIDRequest) (operation.None, error) {
		e := from.View.Export(in.ID)
		_, err := client.Do(ctx, r.Client,
			client.DropExport{ID: in.ID, Customer: from.Customer}, from.Call)
		if err == nil && r.Blobs != nil && e != nil && e.Customer == from.Customer &&
			!e.Blob.IsZero() {
			_ = r.Blobs.Delete(ctx, keyOf(e, e.Blob)) // otherwise it is removed as an orphan
		}
		return operation.None{}, err
	})
}

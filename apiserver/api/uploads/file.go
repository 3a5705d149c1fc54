package uploads

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
	"time"

	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/upload"
)

const (
	// renewEvery is how often claims are renewed while files arrive. They expire after two minutes.
	renewEvery = 30 * time.Second
	// cleanUpTime is how long undoing what a refused call began may take.
	cleanUpTime = 10 * time.Second
)

// refusals are the errors of both operations.
func refusals() []fault.Code {
	return []fault.Code{fault.NotFound, fault.BadFormat, fault.UnsupportedMediaType,
		fault.LengthRequired, fault.PayloadTooLarge, fault.UploadTooSlow, fault.OutOfSpace,
		fault.IngestCapacity, fault.IngestCapacityGlobal, fault.UploadsNotTaken}
}

// file is a file that is being uploaded.
type file struct {
	Resource
	from    *operation.Caller
	format  upload.Format
	content string            // of a JSON body
	stream  *operation.Stream // nil: the body is JSON
	check   bool
	upload  string // names the file's parts; "": the file comes with this call
	// usable returns what else prevents the file, according to the current state.
	usable func(v *client.View) error
	begin  client.BeginImport // names its scraper
	maybe  bool               // the run may exist: nothing may be undone
}

// acceptFile accepts the file, or checks whether it would. It stores the file in the blob store
// before it proposes the command that names it.
func (f *file) acceptFile(ctx context.Context) (begun client.BegunImport, err error) {
	if err := f.malformed(); err != nil {
		return begun, err
	}
	if f.from.Call != nil && !f.check {
		replay, failed := client.Begin[client.BeginImport](ctx, f.Client,
			client.ClaimCall{Node: f.Node, Boot: f.Boot}, f.from.Call)
		if failed != nil {
			return begun, failed
		}
		if replay != nil {
			f.from.Job = replay.Job
			return *replay, nil
		}
		defer f.keepClaim(ctx)(&err)
	}
	if err := f.refused(f.from.View); err != nil || f.check {
		return begun, err
	}
	body, err := f.receive(ctx)
	if err != nil {
		return begun, err
	}
	if joined, is := body.(io.Closer); is {
		defer func() { _ = joined.Close() }() // it was only read, or is not wanted
	}
	view, err := f.Client.Fresh(ctx) // its scraper may have been protected meanwhile
	if err == nil {
		err = f.usable(view)
	}
	if err != nil {
		return begun, err
	}
	f.begin.Job, f.begin.Customer = f.IDs.New(), f.from.Customer
	f.begin.Format, f.begin.Heavy = string(f.format), f.format == upload.XLSX
	key := blobstore.Key{Kind: blobstore.Uploads, Owner: f.from.Customer,
		ID: f.begin.Job.String()}
	written, err := f.Blobs.Put(ctx, key, body)
	if err != nil {
		return begun, fmt.Errorf("keep an upload: %w", err)
	}
	f.begin.Bytes = written.Bytes
	f.from.Job = f.begin.Job
	begun, err = client.Do(ctx, f.Client, f.begin, f.from.Call)
	if err == nil && f.upload != "" {
		f.dropParts(ctx)
	}
	if f.maybe = uncertain(err); err != nil && !f.maybe {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		_ = f.Blobs.Delete(cleaning, key) // otherwise it expires
	}
	return begun, err
}

// uncertain reports whether a command may have been applied despite its error.
func uncertain(err error) bool {
	code := fault.CodeOf(err) // "" without an error
	return code == fault.Unavailable || code == fault.Internal
}

// malformed reports what is wrong with the call, independently of the state.
func (f *file) malformed() error {
	bytes := int64(len(f.content))
	if f.stream != nil {
		bytes = f.stream.Length
		if !f.format.Is(f.stream.ContentType) {
			return fault.Invalid(fault.UnsupportedMediaType, "Content-Type",
				"must be %s, that of the format %s", f.format.MediaTypes()[0], f.format)
		}
	}
	switch most := limits.UploadBytes(f.from.View, f.from.Customer, f.format); {
	case f.check && (f.stream == nil || bytes > 0):
		return fault.Invalid(fault.InvalidRequest, "check",
			"stands with an empty body of the file's Content-Type")
	case f.upload != "" && (f.stream == nil || bytes > 0):
		return fault.Invalid(fault.InvalidRequest, "uploadId",
			"stands with an empty body of the file's Content-Type")
	case bytes > most && (f.stream != nil || f.format != upload.XLSX):
		return f.tooLarge(most)
	case f.Blobs == nil:
		return errNotTaken()
	}
	return nil
}

func errNotTaken() error {
	return fault.New(fault.UploadsNotTaken, "the operator of the service takes no files")
}

// errInternal refuses files for rows that only the service makes.
func errInternal(field string) error {
	return fault.Invalid(fault.InvalidRequest, field,
		"its rows are made of another group's by the service: they are read alone")
}

func errNoSpace() error {
	return fault.New(fault.OutOfSpace, "the service has too little disk space; try again later")
}

func (f *file) tooLarge(most int64) error {
	return fault.New(fault.PayloadTooLarge, "a file of the format %s may have at most %d bytes",
		f.format, most)
}

// refused returns why the file would be refused, before it arrives. The command decides again.
func (f *file) refused(view *client.View) error {
	if view.IsShort() {
		return errNoSpace()
	}
	if err := f.usable(view); err != nil {
		return err
	}
	return client.RoomForImport(view, f.from.Customer)
}

// receive returns the file once all of it has arrived.
func (f *file) receive(ctx context.Context) (io.Reader, error) {
	switch {
	case f.upload != "":
		return f.joined(ctx)
	case f.stream != nil:
		f.stream.Within(limits.UploadTime(f.from.View))
		return f.stream, f.stream.Receive(ctx, operation.Verbatim)
	case f.format == upload.XLSX:
		whole, err := base64.StdEncoding.DecodeString(f.content)
		if err != nil {
			return nil, fault.Invalid(fault.BadFormat, "content", "is no Base64")
		}
		most := limits.UploadBytes(f.from.View, f.from.Customer, f.format)
		if int64(len(whole)) > most {
			return nil, f.tooLarge(most)
		}
		return bytes.NewReader(whole), nil
	}
	return bytes.NewReader([]byte(f.content)), nil
}

// keepClaim renews the call's claim until end is called. end releases the claim if the call has
// failed.
func (f *file) keepClaim(ctx context.Context) (end func(failed *error)) {
	renewing, cancel := context.WithCancel(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for clock.Pause(renewing, f.Clock, renewEvery) {
			// The next renewal makes up for a failed one.
			_, _ = client.Do(renewing, f.Client, client.RenewClaims{Node: f.Node, Boot: f.Boot,
				Ticket: f.from.Call.Ticket}, nil)
		}
	})
	return func(failed *error) {
		cancel()
		renewal.Wait()
		if *failed == nil || f.maybe {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		_, _ = client.Do(ctx, f.Client, client.ReleaseClaim{}, f.from.Call)
	}
}

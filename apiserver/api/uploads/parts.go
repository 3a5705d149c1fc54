package uploads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/upload"
)

// FileParts tells how much of a file in parts has arrived.
type FileParts struct {
	Received  int64 `json:"receivedBytes" min:"0" doc:"Bytes received without a gap: the offset at which to continue"`
	PartBytes int64 `json:"partBytes" doc:"Bytes of each part; the last one may have fewer"`
}

type putPartRequest struct {
	ID     string `path:"uploadId" pattern:"^[A-Za-z0-9_-]{16,64}$" doc:"Id of the file, chosen by the sender and unique for the customer, such as a UUID."`
	Offset int64  `query:"offset" required:"true" min:"0" doc:"Where the part begins in the file: a multiple of partBytes"`
	Length int64  `query:"length" required:"true" min:"1" doc:"Bytes of the whole file; the same with each part"`
	Body   []byte `body:"raw" media:"application/octet-stream" limit:"4000000"`
}

// putPart is PUT /api/uploads/{uploadId}.
func (r Resource) putPart() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_file_part",
		Routes: operation.Routes("PUT /api/uploads/{uploadId}"), Group: group,
		Summary: "Sends a part of a file",
		Description: "If the connection breaks, continue after the last part received. Each " +
			"part except the last has 4,000,000 bytes. A part is kept once it is answered; " +
			"sending it again replaces it. When all parts are there, an upload with uploadId " +
			"and an empty body assembles the file and deletes the parts. For each customer 100 " +
			"parts are kept, each for 24 hours.",
		Access: auth.Write, Rate: limits.General, Timeout: answerTime, Sized: true,
		Errors: []fault.Code{fault.UnsupportedMediaType, fault.LengthRequired,
			fault.PayloadTooLarge, fault.OutOfSpace, fault.IngestCapacity, fault.UploadsNotTaken},
	}, func(ctx context.Context, from *operation.Caller, in *putPartRequest) (FileParts, error) {
		most := limits.PartedBytes(from.View, from.Customer)
		switch {
		case r.Blobs == nil:
			return FileParts{}, errNotTaken()
		case in.Length > most:
			return FileParts{}, fault.New(fault.PayloadTooLarge,
				"a file may have at most %d bytes", most)
		case in.Offset%upload.PartBytes != 0 || in.Offset >= in.Length:
			return FileParts{}, fault.Invalid(fault.InvalidRequest, "offset",
				"must be a multiple of %d below the length", upload.PartBytes)
		case int64(len(in.Body)) != min(upload.PartBytes, in.Length-in.Offset):
			return FileParts{}, fault.Invalid(fault.InvalidRequest, "",
				"the part must have %d bytes, and has %d",
				min(upload.PartBytes, in.Length-in.Offset), len(in.Body))
		case from.View.IsShort():
			return FileParts{}, errNoSpace()
		}
		known, err := r.partsOf(ctx, from.Customer, in.ID)
		if err != nil {
			return FileParts{}, err
		}
		if known.length != 0 && known.length != in.Length {
			return FileParts{}, fault.Invalid(fault.InvalidRequest, "length",
				"other parts under this uploadId are of a file of %d bytes", known.length)
		}
		known.length = in.Length
		index := in.Offset / upload.PartBytes
		isNew := !known.has[index]
		if isNew && known.ofCustomer >= upload.MaxParts {
			return FileParts{}, errManyParts()
		}
		key := known.key(index)
		if _, err := r.Blobs.Put(ctx, key, bytes.NewReader(in.Body)); err != nil {
			return FileParts{}, fmt.Errorf("keep a part of a file: %w", err)
		}
		if known, err = r.partsOf(ctx, from.Customer, in.ID); err != nil {
			return FileParts{}, err
		}
		if isNew && known.ofCustomer > upload.MaxParts { // other parts arrived at the same time
			cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
			defer cancel()
			_ = r.Blobs.Delete(cleaning, key) // otherwise it expires
			return FileParts{}, errManyParts()
		}
		return known.answer(), nil
	})
}

func errManyParts() error {
	return fault.New(fault.IngestCapacity, "%d parts of files that are not whole are kept, each "+
		"for 24 hours; send this file whole, or finish others", upload.MaxParts)
}

type getPartsRequest struct {
	ID string `path:"uploadId" pattern:"^[A-Za-z0-9_-]{16,64}$" doc:"Id of the file, as sent with its parts"`
}

// getParts is GET /api/uploads/{uploadId}.
func (r Resource) getParts() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_file_parts",
		Routes: operation.Routes("GET /api/uploads/{uploadId}"), Group: group,
		Summary:     "Returns how much of a file sent in parts has arrived",
		Description: "If nothing has arrived, received is 0.",
		Access:      auth.Write, Rate: limits.General, Errors: []fault.Code{fault.UploadsNotTaken},
	}, func(ctx context.Context, from *operation.Caller, in *getPartsRequest) (FileParts, error) {
		if r.Blobs == nil {
			return FileParts{}, errNotTaken()
		}
		known, err := r.partsOf(ctx, from.Customer, in.ID)
		return known.answer(), err
	})
}

// parts are the parts of one file in the blob store, which has their only record.
type parts struct {
	customer, id string
	length       int64          // of the file; 0: no parts exist
	has          map[int64]bool // by number
	ofCustomer   int            // number of parts of all the customer's files
}

// partsOf lists the parts under an id. Parts with different file lengths do not count: two senders
// used the same id, and neither file can become complete.
func (r Resource) partsOf(ctx context.Context, customer, id string) (parts, error) {
	known := parts{customer: customer, id: id, has: map[int64]bool{}}
	var next []byte
	for {
		page, err := r.Blobs.List(ctx, blobstore.Parts, customer, next)
		if err != nil {
			return parts{}, fmt.Errorf("look at the parts of files: %w", err)
		}
		for _, info := range page.Blobs {
			known.ofCustomer++
			length, index, ok := partOf(info.Key.ID, id)
			switch {
			case !ok:
			case known.length != 0 && known.length != length:
				return parts{}, fault.Invalid(fault.InvalidRequest, "uploadId",
					"files of two lengths have come under it; take another one")
			default:
				known.length, known.has[index] = length, true
			}
		}
		if next = page.Next; next == nil {
			return known, nil
		}
	}
}

// key is the key of a part: the id, the file's length and the part's number.
func (p *parts) key(index int64) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Parts, Owner: p.customer,
		ID: fmt.Sprintf("%s.%d.%d", p.id, p.length, index)}
}

// partOf parses the key of a part.
func partOf(name, id string) (length, index int64, ok bool) {
	said, ok := strings.CutPrefix(name, id+".")
	first, second, both := strings.Cut(said, ".")
	length, err := strconv.ParseInt(first, 10, 64)
	index, other := strconv.ParseInt(second, 10, 64)
	return length, index, ok && both && err == nil && other == nil
}

func (p *parts) received() int64 {
	var index int64
	for p.has[index] {
		index++
	}
	return min(index*upload.PartBytes, p.length)
}

func (p *parts) answer() FileParts {
	return FileParts{Received: p.received(), PartBytes: upload.PartBytes}
}

// joined returns the file, if all its parts have arrived.
func (f *file) joined(ctx context.Context) (io.Reader, error) {
	known, err := f.partsOf(ctx, f.from.Customer, f.upload)
	if err != nil {
		return nil, err
	}
	most := limits.UploadBytes(f.from.View, f.from.Customer, f.format)
	switch got := known.received(); {
	case known.length > most:
		return nil, f.tooLarge(most)
	case known.length == 0 || got < known.length:
		return nil, fault.Invalid(fault.InvalidRequest, "uploadId",
			"%d bytes of the file have come; send the parts behind them first", got)
	}
	return &joined{ctx: ctx, blobs: f.Blobs, parts: known}, nil
}

// dropParts removes the parts of a file that is stored as a whole. Parts that remain expire.
func (f *file) dropParts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	known, err := f.partsOf(ctx, f.from.Customer, f.upload)
	for index := range known.has {
		if err == nil {
			err = f.Blobs.Delete(ctx, known.key(index))
		}
	}
}

// joined reads the parts in order, and opens each when it is reached.
type joined struct {
	ctx   context.Context
	blobs Blobs
	parts parts
	next  int64
	open  io.ReadCloser // nil: no part is open
}

// Close implements io.Closer.
func (j *joined) Close() error {
	if j.open == nil {
		return nil
	}
	return j.open.Close()
}

// Read implements io.Reader.
func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.open == nil {
			if !j.parts.has[j.next] {
				return 0, io.EOF
			}
			part, err := j.blobs.Open(j.ctx, j.parts.key(j.next), 0, -1)
			if errors.Is(err, blobstore.ErrNotFound) { // it has expired meanwhile
				return 0, fault.Invalid(fault.InvalidRequest, "uploadId",
					"a part has gone meanwhile; send it again")
			}
			if err != nil {
				return 0, err
			}
			j.open = part
			j.next++
		}
		n, err := j.open.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := j.open.Close(); err != nil {
			return n, err
		}
		if j.open = nil; n > 0 {
			return n, nil
		}
	}
}

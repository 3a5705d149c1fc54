package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// bodyType is the media type of every body, so that no browser runs it or shows it as a page of
// this server.
const bodyType = "application/octet-stream"

// placeOf is where the body of a record is stored.
func placeOf(job *client.Job, record *rowstore.Record) bodies.Place {
	return bodies.Place{Customer: job.Customer, Group: job.Group, Scraper: job.Scraper,
		Job: job.ID, Fetch: record.Fetch, At: record.At, Hash: record.BodyHash,
		Kept: record.Kept}
}

// bodyOf describes the stored body of a row's page; nil: there is none.
func (r Resource) bodyOf(row string, job *client.Job, record *rowstore.Record) *KeptPage {
	place := placeOf(job, record)
	if r.Blobs == nil || place.Kept == nil || !r.Clock.Now().Before(place.Until()) {
		return nil
	}
	return &KeptPage{Path: "/api/scraper/data/" + row + "/receipt/body",
		Until: api.Time(place.Until().UnixMilli())}
}

// body is GET /api/scraper/data/{rowId}/receipt/body.
func (r Resource) body() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_row_body",
		Routes: operation.Routes("GET /api/scraper/data/{rowId}/receipt/body"), Group: group,
		Summary: "Returns the body of the page that a row came from",
		Description: "The body is kept for the days that the scraper's config.keepBodyDays had " +
			"when the page was read. Its text is UTF-8, and its SHA-256 is bodySha256 in the " +
			"row's receipt. If a customer has more bodies than the server keeps, the oldest " +
			"are deleted earlier. People with whom a group is shared can read its rows, but no " +
			"bodies.",
		Access: auth.Read, Rate: limits.Read,
		Media: []string{bodyType},
		Errors: []fault.Code{fault.NotFound, fault.BodyNotKept, fault.BodyNotShared,
			fault.BodyExpired},
	}, func(ctx context.Context, from *operation.Caller,
		in *receiptRequest) (operation.Download, error) {
		job, record, err := r.pageOf(ctx, from, in)
		if err != nil {
			return operation.Download{}, err
		}
		place := placeOf(job, record)
		switch {
		case job.Customer != from.Customer:
			return operation.Download{}, fault.New(fault.BodyNotShared,
				"bodies are their owner's to read")
		case place.Kept == nil || r.Blobs == nil:
			return operation.Download{}, fault.New(fault.BodyNotKept,
				"the scraper kept no bodies when the page was read")
		case !r.Clock.Now().Before(place.Until()):
			return operation.Download{}, expired()
		}
		entry, body, err := r.Bodies.Read(ctx, r.Blobs, &place)
		if errors.Is(err, bodies.ErrGone) {
			return operation.Download{}, expired()
		}
		if err != nil {
			return operation.Download{}, fmt.Errorf("body of row %s: %w", in.RowID, err)
		}
		return operation.Download{ContentType: bodyType, Foreign: true,
			Name: fmt.Sprintf("body-%s-%d-%d.%s", job.ID, record.Unit.Seq, record.Unit.Page,
				ending(entry.Pages[0].ContentType)),
			Write: func(_ context.Context, w io.Writer) error {
				_, err := w.Write(body)
				return err
			}}, nil
	})
}

func expired() error {
	return fault.New(fault.BodyExpired, "its time is over, or it made room for newer ones")
}

// ending is the extension of a body's file name.
func ending(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); {
	case strings.HasSuffix(media, "html"), strings.HasSuffix(media, "xhtml+xml"):
		return "html"
	case strings.HasSuffix(media, "json"):
		return "json"
	case strings.HasSuffix(media, "xml"):
		return "xml"
	}
	return "txt"
}

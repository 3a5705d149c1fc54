package data

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/internal/scraped"
	"shoal.dev/shoal/pkg/fault"
)

// client is GET /api/scraper/data/group/{id}/client.
func (r Resource) client() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_group_data_client",
		Routes: operation.Routes("GET /api/scraper/data/group/{id}/client"), Group: group,
		Summary: "Reads a group's rows by page, with every scraped text marked as data",
		Description: "Each text becomes an object that says where it was scraped. It is cut at " +
			"2,000 characters. Control characters except tabs and line breaks are removed, and " +
			"so are those that override the writing direction. Otherwise texts are unchanged. " +
			reasons +
			" Numbers, booleans, null and members that begin with _ stay as they are.",
		Access: auth.Read, Agents: operation.Reads,
		Feature: plans.ExternalAPI, Rate: limits.Read, Timeout: 5 * time.Minute,
		Errors: []fault.Code{fault.NotFound, fault.ScraperNotFound, fault.InvalidFilter,
			fault.InvalidSort, fault.InvalidPage},
	}, func(ctx context.Context, from *operation.Caller,
		in *groupRequest) (operation.Streamed[api.Page[sanitizedRow]], error) {
		var answer operation.Streamed[api.Page[sanitizedRow]]
		read, err := r.readPage(ctx, from, in)
		if err != nil {
			return answer, err
		}
		page := api.NewPage[sanitizedRow](nil, read.total, in.Page, in.Size)
		answer.Write = func(ctx context.Context, w io.Writer) error {
			next := func() ([]api.Row, error) {
				rows := read.rows
				read.rows = nil
				if len(rows) == 0 {
					return nil, nil
				}
				return api.Rows(rows), nil
			}
			if read.cut {
				next = parts(ctx, r.Store, read.query, len(read.rows))
			}
			return page.Write(w, func() ([]sanitizedRow, error) {
				rows, err := next()
				if err != nil || rows == nil {
					return nil, err
				}
				sanitized := make([]sanitizedRow, len(rows))
				for i, row := range rows {
					sanitized[i] = sanitizedRow(row)
				}
				return sanitized, nil
			})
		}
		return answer, nil
	})
}

// sanitizedRow is a stored row that writes itself in the form for agents. That form may be much
// longer than the row, so it is never held in memory.
type sanitizedRow json.RawMessage

// WriteTo implements io.WriterTo.
func (r sanitizedRow) WriteTo(to io.Writer) (int64, error) {
	return 0, scraped.WriteRow(to, json.RawMessage(r), "")
}

// Schema describes a sanitized row in the OpenAPI document.
func (sanitizedRow) Schema() *jsonschema.Schema {
	return &jsonschema.Schema{Title: "SanitizedRow", Type: "object",
		Description: "A row in which each text, also in lists and objects, is an object: type " +
			"(scraped), content, origin (the row's _sourceUrl) and truncated.",
		AdditionalProperties: &jsonschema.Schema{}}
}

package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// A page whose rows exceed partBytes is sent in parts of about that size. The store has
// partPatience to read each.
const (
	partBytes    = 4 << 20
	partPatience = 30 * time.Second
)

type groupRequest struct {
	ID         ids.ID   `path:"id"`
	Page       int      `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size       int      `query:"size" default:"20" min:"1" clamp:"1000" code:"invalid_page"`
	Sort       []string `query:"sort" each:"max=1024" max:"5" code:"invalid_sort" doc:"A field, then asc or desc: price,desc. scrapedAt means _scrapedAt. Default: newest first."`
	Categories []string `query:"categories" max:"20" each:"max=4096" doc:"Only rows in any of these categories, by id or name. Repeated, or separated by commas as in csv; at most 20. With filters, rows must match both."`
	Filters    string   `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON: {\"price\":{\"$gt\":10}}"`
	IsLastRun  bool     `query:"isLastRun" default:"false" doc:"Only each scraper's newest run; a deleted scraper has none"`
	ScraperID  ids.ID   `query:"scraperId" doc:"Only rows of this scraper"`
}

// group is GET /api/scraper/data/group/{id}.
func (r Resource) group() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_group_data", Routes: operation.Routes("GET /api/scraper/data/group/{id}"),
		Group:       group,
		Summary:     "Reads a group's rows by page",
		Description: reasons,
		Access:      auth.Read, Rate: limits.Read, Timeout: 5 * time.Minute,
		Errors: []fault.Code{fault.NotFound, fault.ScraperNotFound, fault.InvalidFilter,
			fault.InvalidSort, fault.InvalidPage},
	}, func(ctx context.Context, from *operation.Caller,
		in *groupRequest) (operation.Streamed[api.Page[api.Row]], error) {
		var none operation.Streamed[api.Page[api.Row]]
		read, err := r.readPage(ctx, from, in)
		if err != nil {
			return none, err
		}
		if !read.cut {
			return operation.Streamed[api.Page[api.Row]]{Whole: api.NewPage(api.Rows(read.rows),
				read.total, in.Page, in.Size)}, nil
		}
		page := api.NewPage[api.Row](nil, read.total, in.Page, in.Size)
		none.Write = func(ctx context.Context,
			w io.Writer) error {
			return page.Write(w, parts(ctx, r.Store, read.query, len(read.rows)))
		}
		return none, nil
	})
}

// readOfPage is the result of the first read of a page.
type readOfPage struct {
	query rowstore.RowsQuery
	rows  []json.RawMessage
	total int64
	cut   bool // the page has more rows than rows
}

func (r Resource) readPage(ctx context.Context, from *operation.Caller,
	in *groupRequest) (readOfPage, error) {
	q, err := in.query(ctx, r, from)
	if err != nil {
		return readOfPage{}, err
	}
	rows, err := r.Store.Rows(ctx, q)
	if err != nil {
		return readOfPage{}, fmt.Errorf("rows of group %s: %w", in.ID, err)
	}
	total, cut := int64(q.Offset+len(rows)), len(rows) < q.Limit && length(rows) >= q.Bytes
	// otherwise this is the last page
	if cut || len(rows) == q.Limit || len(rows) == 0 && q.Offset > 0 {
		if total, err = r.Store.Count(ctx, q.Scope, q.Filter); err != nil {
			return readOfPage{}, fmt.Errorf("rows of group %s: %w", in.ID, err)
		}
	}
	if cut {
		if q.Upto, err = r.Store.Horizon(ctx); err != nil {
			return readOfPage{}, fmt.Errorf("rows of group %s: %w", in.ID, err)
		}
	}
	if total == 0 {
		from.Reason = r.whyNone(ctx, []rowstore.Scope{q.Scope}, q.Filter)
	}
	return readOfPage{q, rows, total, cut}, nil
}

// parts reads a page that is too long for one read, in parts of partBytes. The limit of each read
// follows from the rows of the read before. No read of the store is open while a part is sent,
// which takes as long as the client does.
func parts(ctx context.Context, store rowstore.Reads, q rowstore.RowsQuery,
	rows int) func() ([]api.Row, error) {
	left := q.Limit
	return func() ([]api.Row, error) {
		if left == 0 {
			return nil, nil
		}
		q.Limit = min(left, rows+1)
		reading, cancel := context.WithTimeout(ctx, partPatience)
		defer cancel()
		found, err := store.Rows(reading, q)
		if err != nil {
			return nil, fmt.Errorf("part of a page: %w", err)
		}
		rows, left, q.Offset = 2*len(found), left-len(found), q.Offset+len(found)
		if len(found) == 0 {
			return nil, nil
		}
		return api.Rows(found), nil
	}
}

func length(rows []json.RawMessage) (bytes int) {
	for _, row := range rows {
		bytes += len(row)
	}
	return bytes
}

func (in *groupRequest) query(ctx context.Context, r Resource,
	from *operation.Caller) (rowstore.RowsQuery, error) {
	q := rowstore.RowsQuery{Offset: in.Page * in.Size, Limit: in.Size, Bytes: partBytes}
	group, err := ownership.ReadableGroup(from.View, from.Customer, in.ID, "id")
	if err != nil {
		return q, err
	}
	from.Reads = ownership.StillReads(r.Client, from.Customer, group.Customer, in.ID)
	if err := api.Reach(in.Page, in.Size, "read on with the cursor of GET "+
		"/api/scraper/data?groupId="+in.ID.String()); err != nil {
		return q, err
	}
	if q.Scope, err = scope(from.View, from.Customer, in.ID, in.ScraperID); err != nil {
		return q, err
	}
	if in.IsLastRun {
		asOf, err := newestRun(ctx, r.History, from.View, group.Customer)
		if err == nil {
			q.Scope.Jobs, err = latestRuns(ctx, r.History, from.View, in.ID, in.ScraperID, asOf)
		}
		if err != nil {
			return q, fmt.Errorf("latest runs of group %s: %w", in.ID, err)
		}
	}
	named, err := namedCategories(from.View, in.ID, in.Categories)
	if err != nil {
		return q, err
	}
	if q.Filter, err = where(named, in.Filters); err != nil {
		return q, err
	}
	q.Sort, err = parseSort(in.Sort)
	return q, err
}

// scope is the rows of a group, or of one scraper in it. The customer may read the group.
func scope(v *client.View, customer string, group, scraper ids.ID) (rowstore.Scope, error) {
	if !scraper.IsZero() {
		if _, err := ownership.ReadableScraper(v, customer, scraper, "scraperId"); err != nil {
			return rowstore.Scope{}, err
		}
	}
	return client.Shown(v, group, scraper), nil
}

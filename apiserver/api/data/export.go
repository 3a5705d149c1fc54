package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
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
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules"
	"shoal.dev/shoal/pkg/schema"
)

const (
	// exportTime is how long sending an export may take.
	exportTime = time.Hour
	// exportBytes bounds the rows in memory. No read of the store is open while they are sent.
	exportBytes = 1 << 20
	exportRows  = 1_000
)

// formats describes how each format represents values.
const formats = "No cell holds a formula. xlsx has one sheet called data, with at most 100,000 " +
	"rows and 256 MiB of rows; more gives export_too_large. In xlsx, text is cut at 32,767 " +
	"characters, and control characters that a sheet cannot hold are replaced. Numbers of more " +
	"than 15 digits become text. A parquet column has the type of all its values: text, " +
	"boolean, 64-bit integer or double. If that would change a value, and for objects and " +
	"arrays, the column is JSON. parquet has at most 2,000 columns, the other formats 16,384."

type exportRequest struct {
	selection
	Format export.Format `query:"format" default:"csv" enum:"csv,jsonl,parquet,xlsx"`
	Limit  int64         `query:"limit" default:"0" min:"0" doc:"Most rows; 0 for all"`
	BOM    bool          `query:"bom" default:"false" doc:"Begin a csv with a byte order mark, so that spreadsheets recognize UTF-8"`
	Guard  bool          `query:"guard" default:"true" doc:"In a csv, put an apostrophe before text that a spreadsheet would take for a formula"`
}

// export is GET /api/scraper/data/export.
func (r Resource) export() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_export_data", Routes: operation.Routes("GET /api/scraper/data/export"),
		Group:   group,
		Summary: "Returns any number of rows as one file",
		Description: "The call counts as one call, and as an open stream while it is sent. As " +
			"in GET /api/scraper/data, rows come in the order in which they were stored, or by " +
			"sort. They are as of the call. A sorted file scans all rows once for each 50,000 " +
			"of them. jsonl has each row as stored, one per line. In other formats, columns " +
			"are the configured fields in their order, then others in order of first " +
			"appearance. Columns that the server adds (_…) come last. With fields, the columns " +
			"are exactly those; without leaves columns out. An interrupted answer ends without its last chunk. " +
			resuming + formats,
		Access: auth.Read, Feature: plans.DataExport, Rate: limits.Read, Timeout: exportTime,
		Media: export.MediaTypes(),
		Errors: []fault.Code{fault.NotFound, fault.ScraperNotFound, fault.JobNotFound,
			fault.InvalidFilter, fault.InvalidSort, fault.InvalidCursor, fault.ExportTooLarge},
	}, func(ctx context.Context, from *operation.Caller,
		in *streamRequest) (operation.Download, error) {
		return in.file(ctx, r, from, in.name())
	})
}

// streamRequest is an export that is sent as it is written.
type streamRequest struct {
	exportRequest
	resumption
}

// file is a download of the rows as a file with the given name.
func (in *streamRequest) file(ctx context.Context, r Resource, from *operation.Caller,
	name string) (operation.Download, error) {
	none := operation.Download{}
	o := export.Options{Format: in.Format, BOM: in.BOM, Unguarded: !in.Guard, Skip: in.Skip}
	var err error
	if err = in.check(o.Format); err != nil {
		return none, err
	}
	if o.Members, err = in.members(); err != nil {
		return none, err
	}
	rows, cursor, err := in.source(ctx, r, from, &o)
	if err != nil {
		return none, err
	}
	disk := from.Disk()
	o.Disk = disk
	return operation.Download{
		ContentType: o.Format.MediaType(), Name: name + "." + string(o.Format), Cursor: cursor,
		Write: func(ctx context.Context, w io.Writer) error {
			defer disk.Close()
			return export.Write(ctx, w, rows, o)
		}}, nil
}

// name is the file name without its extension.
func (in *exportRequest) name() string {
	for _, id := range []ids.ID{in.JobID, in.ScraperID} {
		if !id.IsZero() {
			return "rows-" + id.String()
		}
	}
	return "rows-" + in.GroupID.String()
}

// source returns a function that reads the rows as they are now; it may be called repeatedly. With
// a cursor, they are those of the export that it names. Access is decided only once, because a long
// read holds no state. It puts the configured fields in o. cursor is what a later call continues
// with; "": this format cannot.
func (in *streamRequest) source(ctx context.Context, r Resource, from *operation.Caller,
	o *export.Options) (rows export.Source, cursor string, err error) {
	sort, err := in.sorted()
	if err != nil {
		return nil, "", err
	}
	read := readRequest{selection: in.selection, Cursor: in.Cursor}
	q, identity, owner, err := read.makeQuery(ctx, r, from)
	if err != nil {
		return nil, "", err
	}
	if o.Format != export.JSONL && o.Members.Fields == nil {
		if o.First, err = in.configured(ctx, r.History, from); err != nil {
			return nil, "", err
		}
	}
	identity = append(identity, in.form(o)...)
	at, err := read.placeIn(ctx, r, from, q.Scope, identity, owner)
	if err != nil {
		return nil, "", err
	}
	from.Reads = ownership.StillReads(r.Client, from.Customer, owner,
		in.groups(from.View, from.Customer, q.Scope.Group)...)
	scopes, err := read.scopesAt(ctx, r, from, &at, q.Scope, owner)
	if err != nil {
		return nil, "", err
	}
	watch, err := read.watch(ctx, r, from, &at, q.Scope, owner, scopes)
	if err != nil {
		return nil, "", err
	}
	if o.Format.Resumes() {
		cursor = api.NewCursor(at, identity...)
	}
	q.Upto, q.Bytes = at.Upto, exportBytes
	most := in.Limit
	return func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return checkWhole(ctx, watch.Check, readAll(ctx, r.Store, scopes, q, sort, most))
	}, cursor, nil
}

// checkWhole passes rows on. After the last one it fails if check finds that some were removed.
func checkWhole(ctx context.Context, check func(context.Context) error,
	rows iter.Seq2[[]json.RawMessage, error]) iter.Seq2[[]json.RawMessage, error] {
	return func(yield func([]json.RawMessage, error) bool) {
		for some, err := range rows {
			if !yield(some, err) || err != nil {
				return
			}
		}
		if err := check(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// readAll reads the rows of scopes in the order in which they were stored, or sorted by a field.
func readAll(ctx context.Context, store rowstore.Reads, scopes []rowstore.Scope,
	q rowstore.ScanQuery, sort *rowstore.Sort, most int64) iter.Seq2[[]json.RawMessage, error] {
	if sort == nil {
		return scanAll(ctx, store, scopes, q, most)
	}
	return sortAll(ctx, store, rowstore.OrderQuery{Scopes: scopes, Filter: q.Filter, Sort: *sort,
		Upto: q.Upto, Limit: rowstore.MaxOrdered}, q.Bytes, most)
}

// scanAll reads the rows of scopes, one scope after the other. It reads at most most rows; 0: no
// limit.
func scanAll(ctx context.Context, store rowstore.Reads, scopes []rowstore.Scope,
	q rowstore.ScanQuery, most int64) iter.Seq2[[]json.RawMessage, error] {
	return func(yield func([]json.RawMessage, error) bool) {
		left := most
		for _, q.Scope = range scopes {
			for q.After = 0; q.After < q.Upto; {
				if q.Limit = exportRows; most > 0 {
					q.Limit = int(min(exportRows, left))
				}
				rows, last, err := store.Scan(ctx, q)
				if err != nil {
					yield(nil, fmt.Errorf("rows to export: %w", err))
					return
				}
				left -= int64(len(rows))
				if !yield(rows, nil) || most > 0 && left <= 0 {
					return
				}
				q.After = last
			}
		}
	}
}

// configured lists the configured fields of the scrapers in this order: the fields of itemsConfig
// or of the schema, then the fields that rules write.
func (in *exportRequest) configured(ctx context.Context, history *client.History,
	from *operation.Caller) ([]string, error) {
	var names []string
	var schemas []string // already added; many scrapers may share one
	add := func(s *client.Scraper) bool {
		for _, field := range s.Spec.ItemsConfig {
			names = append(names, field.Column())
		}
		if ref := s.Spec.Schema; ref != nil && !slices.Contains(schemas, ref.ID) {
			schemas = append(schemas, ref.ID)
			names = append(names, ofSchema(from.View, s)...)
		}
		for i := range s.Spec.PostProcessRules {
			names = append(names, rules.Columns(&s.Spec.PostProcessRules[i])...)
		}
		return true
	}
	scraper := in.ScraperID
	if !in.JobID.IsZero() {
		job, err := history.Run(ctx, from.View, in.JobID)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", in.JobID, err)
		}
		if job != nil {
			scraper = job.Scraper
		}
	}
	if scraper.IsZero() {
		from.View.GroupScrapers(in.GroupID, add)
	} else if s := from.View.Scraper(scraper); s != nil {
		add(s)
	}
	return names, nil
}

// ofSchema lists the properties of a scraper's schema, none if the schema no longer exists.
func ofSchema(v *client.View, s *client.Scraper) (names []string) {
	recipe, _ := v.RecipeOf(s.Customer, &s.Spec, s.Tag)
	compiled, err := schema.Compile(recipe.Schema)
	if err != nil {
		return nil
	}
	properties := compiled.Properties()
	for i := range properties {
		names = append(names, properties[i].Column())
	}
	return names
}

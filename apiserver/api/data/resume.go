package data

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// resuming describes how to continue an export.
const resuming = "If the connection of a csv or jsonl is lost, the rest need not be read from " +
	"the beginning. Repeat the call with the header Shoal-Cursor of the answer as cursor, and " +
	"the number of whole rows that arrived as skip. A row of a csv may have line breaks within " +
	"quotes, and its header is no row. The answer is the rest of the same file: rows as of the " +
	"first call, in the same columns, without a header. With skip 0 it is the whole file. The " +
	"cursor is refused with invalid_cursor if rows of the file are gone, or if configured " +
	"fields or a category were changed. "

// resumption asks for the rest of an export that broke off.
type resumption struct {
	Cursor string `query:"cursor" max:"2048" doc:"The header Shoal-Cursor of an answer that broke off, with all other parameters but skip unchanged; csv and jsonl only"`
	Skip   int64  `query:"skip" default:"0" min:"0" doc:"Whole rows of that answer that arrived; only with cursor"`
}

// check refuses to continue what has no beginning, or a file that is not written row by row.
func (in *resumption) check(format export.Format) error {
	switch {
	case in.Cursor == "" && in.Skip > 0:
		return fault.Invalid(fault.InvalidRequest, "cursor", "needed with skip")
	case in.Cursor != "" && !format.Resumes():
		return fault.Invalid(fault.InvalidRequest, "cursor",
			"%s cannot be continued: begin anew without one, or have the export kept", format)
	}
	return nil
}

// form is what makes the bytes of a file, besides its rows. With other columns or cells, the rest
// of a file would not fit its beginning.
func (in *exportRequest) form(o *export.Options) []string {
	form := []string{"export", string(in.Format), fmt.Sprint(in.Limit, in.BOM, in.Guard),
		fmt.Sprintf("%q", o.Members.Fields), fmt.Sprintf("%q", o.First)}
	if len(o.Members.Without) > 0 {
		form = append(form, fmt.Sprintf("%q", slices.Sorted(maps.Keys(o.Members.Without))))
	}
	return form
}

// watch watches the rows of an export. When it begins, it records their number in at. When it goes
// on, it refuses the cursor if one is gone: the client knows only how many rows it has. So not even
// rows that expire may leave the export, although they leave a read.
func (in *readRequest) watch(ctx context.Context, r Resource, from *operation.Caller, at *place,
	whole rowstore.Scope, owner string, scopes []rowstore.Scope) (export.Watch, error) {
	there, err := r.Store.CountUpto(ctx, scopes, at.Upto)
	if err != nil {
		return export.Watch{}, fmt.Errorf("rows to export: %w", err)
	}
	if in.Cursor == "" {
		at.Counted = &rowCount{Rows: there}
	} else if at.Counted == nil || there != at.Counted.Rows {
		return export.Watch{}, api.RefuseCursor()
	} else if err := in.checkSeen(ctx, r, from, at, whole, owner); err != nil {
		return export.Watch{}, err
	}
	return export.ResumeWatch(r.Store, scopes, at.Upto, there), nil
}

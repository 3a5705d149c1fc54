package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/scraped"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const maxFields = 500

// selection selects the rows to read, and their fields and order.
type selection struct {
	ScraperID  ids.ID   `query:"scraperId" doc:"At least one of scraperId, groupId and jobId is needed"`
	GroupID    ids.ID   `query:"groupId"`
	JobID      ids.ID   `query:"jobId"`
	IsLastRun  bool     `query:"isLastRun" default:"false" doc:"Only each scraper's newest run; a deleted scraper has none"`
	Categories []string `query:"categories" max:"20" each:"max=4096" doc:"Only rows in any of these categories, by id or name. Repeated, or separated by commas as in csv; at most 20. With filters, rows must match both."`
	Filters    string   `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON: {\"price\":{\"$gt\":10}}"`
	Fields     []string `query:"fields" max:"500" each:"max=4096" doc:"Only these members: name,\"Price, EUR\". Repeated, or separated by commas as in csv."`
	Without    []string `query:"without" json:",omitempty" max:"500" each:"max=4096" doc:"Instead of fields: all members but these"`
	Sort       string   `query:"sort" max:"1024" code:"invalid_sort" doc:"One field, then asc or desc: price,desc. Default: in the order in which rows were stored."`
}

type readRequest struct {
	selection
	Limit  int    `query:"limit" default:"100" min:"1" clamp:"1000"`
	Skip   int    `query:"skip" default:"0" min:"0" max:"40000" doc:"Rows to skip; only with sort"`
	Cursor string `query:"cursor" max:"2048" doc:"nextCursor of the previous page; only limit, skip, fields and without may differ"`
}

// place is where a read continues, and what it saw at its beginning. Rows and runs that came later
// stay out of it.
type place struct {
	Group  ids.ID `json:"g"`
	After  int64  `json:"a"` // place within the group
	Upto   int64  `json:"u"`
	Newest newest `json:"n"`
	Added  uint64 `json:"p,omitempty"` // addedOf
	// Retained is the index up to which retention is known to have kept the rows of the read.
	Retained uint64 `json:"r,omitempty"`
	// Files is the index up to which ended files are known to have kept the rows of the read.
	Files uint64 `json:"f,omitempty"`
	// Sorted is the last row of a sorted read, which reads all its groups together.
	Sorted *standing `json:"s,omitempty"`
	Seen   seen      `json:"v,omitzero"`
	// Counted tells whether rows of the read are gone; nil: a cursor of an earlier version.
	Counted *rowCount `json:"c,omitempty"`
}

// read is GET /api/scraper/data.
func (r Resource) read() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_data", Routes: operation.Routes("GET /api/scraper/data"), Group: group,
		Summary: "Reads all rows, page by page, by cursor",
		Description: "Rows come in the order in which they were stored, unless sort names a " +
			"field. A read sees the rows that existed when it began; rows stored later need a " +
			"new read. A cursor is refused once rows that it reads are deleted. A page of " +
			"large rows may have fewer than limit although more follow. If a scraper had runs " +
			"in several groups, its rows come group by group, unless sorted. " + reasons + " " + sorting +
			" Sorting scans all rows for each of the first two pages, and then once for each " +
			"50,000 rows. Other pages are cheap within two minutes of the previous one. To " +
			"reach a distant page, use skip.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 5 * time.Minute,
		Errors: []fault.Code{fault.NotFound, fault.ScraperNotFound, fault.JobNotFound,
			fault.InvalidFilter, fault.InvalidSort, fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *readRequest) (api.CursorPage[api.Row], error) {
		page := api.CursorPage[api.Row]{Items: []api.Row{}}
		kept, err := in.members()
		if err != nil {
			return page, err
		}
		q, identity, owner, err := in.makeQuery(ctx, r, from)
		if err != nil {
			return page, err
		}
		at, err := in.placeIn(ctx, r, from, q.Scope, identity, owner)
		if err == nil && in.Cursor != "" && !at.fits(in.Sort != "") {
			err = api.RefuseCursor()
		}
		if err != nil {
			return page, err
		}
		q.Upto = at.Upto
		sort, err := in.sorted()
		if err != nil {
			return page, err
		}
		if sort == nil && in.Skip > 0 {
			return page, fault.Invalid(fault.InvalidRequest, "skip", "needs sort")
		}
		scopes, err := in.scopesAt(ctx, r, from, &at, q.Scope, owner)
		if err != nil {
			return page, err
		}
		begin := at
		scan := func() (err error) {
			at = begin
			if sort == nil {
				page.Items, page.HasMore, err = in.scan(ctx, r, scopes, &at, q)
			} else {
				page.Items, page.HasMore, err = in.scanSorted(ctx, r, scopes, &at, q, *sort,
					identity)
			}
			return err
		}
		if err = scan(); err != nil {
			return page, err
		}
		if in.Cursor != "" {
			now := *from
			now.View = r.Client.View()
			err = in.checkSeen(ctx, r, &now, &at, q.Scope, owner)
			if err == nil {
				err = in.checkRetained(ctx, r, &now, &at, q.Scope)
			}
		} else if page.HasMore { // nothing asks for the rows of a read without a cursor
			var late bool
			begin.Counted, late, err = in.countRows(ctx, r, from, &at, q.Scope, scopes)
			if at.Counted = begin.Counted; late && err == nil {
				err = scan()
			}
		}
		if err != nil {
			return page, err
		}
		if page.HasMore {
			next := api.NewCursor(at, identity...)
			page.NextCursor = &next
		} else if in.Cursor == "" && in.Skip == 0 && len(page.Items) == 0 {
			from.Reason = r.whyNone(ctx, scopes, q.Filter)
		}
		for i := range page.Items {
			row := json.RawMessage(page.Items[i])
			item, err := kept.Of(row)
			if err != nil {
				return page, err
			}
			if from.Agent && !kept.All() {
				item = scraped.KeepOrigin(item, row)
			}
			page.Items[i] = api.Row(item)
		}
		return page, nil
	})
}

// makeQuery returns the query of the read, what its cursors are bound to, and the owner of the
// rows. Every page decides the scope anew, by what the caller may see now.
func (in *readRequest) makeQuery(ctx context.Context, r Resource, from *operation.Caller) (
	q rowstore.ScanQuery, identity []string, owner string, err error) {
	q = rowstore.ScanQuery{Limit: in.Limit, Bytes: api.PageBytes}
	if q.Scope, owner, err = in.scope(ctx, r.History, from); err != nil {
		return q, nil, "", err
	}
	named, err := namedCategories(from.View, q.Scope.Group, in.Categories)
	if err != nil {
		return q, nil, "", err
	}
	if q.Filter, err = where(named, in.Filters); err != nil {
		return q, nil, "", err
	}
	return q, in.identity(from.Customer, named), owner, nil
}

// placeIn returns the place of the read in the rows of whole.
func (in *readRequest) placeIn(ctx context.Context, r Resource, from *operation.Caller,
	whole rowstore.Scope, identity []string, owner string) (at place, err error) {
	added, err := r.addedOf(ctx, from.View, whole, in.JobID)
	if err != nil {
		return at, err
	}
	if in.Cursor != "" {
		if err = api.ReadCursor(in.Cursor, &at, identity...); err == nil &&
			(at.After < 0 || at.After > at.Upto || at.Added != added) {
			err = api.RefuseCursor()
		}
		return at, err
	}
	at.Added, at.Retained = added, client.RetainingNow(from.View).Upto
	if at.Files, err = r.filesOf(ctx, from.View, whole, in.JobID); err != nil {
		return at, err
	}
	if at.Newest, err = newestRun(ctx, r.History, from.View, owner); err == nil {
		at.Upto, err = r.Store.Horizon(ctx)
	}
	return at, err
}

// scopesAt returns the scopes that the read sees. At its beginning it records them in the place.
func (in *readRequest) scopesAt(ctx context.Context, r Resource, from *operation.Caller,
	at *place, whole rowstore.Scope, owner string) ([]rowstore.Scope, error) {
	at.Newest.hidden = unpin(at.Seen.Hidden)
	scopes, err := in.scopes(ctx, r.History, from, whole, at.Newest)
	if err != nil {
		return nil, err
	}
	if in.Cursor == "" {
		at.Seen = in.see(from.View, owner, scopes)
	} else if at.lacksSeen(from.View, whole, scopes) {
		return nil, api.RefuseCursor()
	}
	return scopes, at.Seen.hide(from.View, scopes)
}

// scan reads from at until the page is full or there are no more rows, and moves at.
func (in *readRequest) scan(ctx context.Context, r Resource, scopes []rowstore.Scope, at *place,
	q rowstore.ScanQuery) (rows []api.Row, more bool, err error) {
	n := max(slices.IndexFunc(scopes,
		func(s rowstore.Scope) bool { return s.Group == at.Group }), 0)
	for rows = []api.Row{}; ; n++ {
		at.Group, q.Scope = scopes[n].Group, scopes[n]
		q.After, q.Limit = at.After, in.Limit-len(rows)
		found, last, err := r.Store.Scan(ctx, q)
		if err != nil {
			return nil, false, fmt.Errorf("scan rows: %w", err)
		}
		rows, at.After = append(rows, api.Rows(found)...), last
		if last < q.Upto || n+1 == len(scopes) {
			return rows, last < q.Upto, nil
		}
		at.After = 0
		if len(rows) == in.Limit {
			at.Group = scopes[n+1].Group
			return rows, true, nil
		}
	}
}

// scopes are the scopes to read one after the other, one for each group that has rows of whole.
// Latest runs are those as of asOf. There is at least one scope.
func (in *selection) scopes(ctx context.Context, history *client.History, from *operation.Caller,
	whole rowstore.Scope, asOf newest) ([]rowstore.Scope, error) {
	var scopes []rowstore.Scope
	v := from.View
	for _, group := range in.groups(v, from.Customer, whole.Group) {
		scope := client.Shown(v, group, whole.Scraper)
		scope.Jobs = whole.Jobs
		if in.IsLastRun {
			latest := asOf.latest
			if latest == nil {
				var err error
				latest, err = latestRuns(ctx, history, v, group, whole.Scraper, asOf)
				if err != nil {
					return nil, fmt.Errorf("latest runs of group %s: %w", group, err)
				}
			}
			scope.Jobs = intersect(whole.Jobs, latest)
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}

// groups are the groups that have the rows, in reading order. There is only one, unless the scraper
// was moved: rows stay where its runs were. Groups that the caller may not read are left out.
func (in *selection) groups(v *client.View, customer string, group ids.ID) []ids.ID {
	groups := []ids.ID{group}
	if s := v.Scraper(in.ScraperID); s != nil && in.ofScraper() {
		groups = slices.DeleteFunc(v.GroupsOf(s), func(group ids.ID) bool {
			return !ownership.Reads(v, customer, s.Customer, group)
		})
	}
	slices.Reverse(groups)
	return groups
}

// ofScraper reports whether the read covers a scraper in all groups that it was in.
func (in *selection) ofScraper() bool {
	return !in.ScraperID.IsZero() && in.GroupID.IsZero() && in.JobID.IsZero()
}

// intersect returns the ids in both lists; a nil left means everything.
func intersect(left, right []ids.ID) []ids.ID {
	if left == nil {
		return right
	}
	return slices.DeleteFunc(slices.Clone(left),
		func(id ids.ID) bool { return !slices.Contains(right, id) })
}

// scope returns the scope of the read and the owner of its rows. If the group is not named, it
// follows from the run or the scraper.
func (in *selection) scope(ctx context.Context, history *client.History,
	from *operation.Caller) (scope rowstore.Scope, owner string, err error) {
	scope = rowstore.Scope{Group: in.GroupID, Scraper: in.ScraperID,
		Since: client.RowsSince(from.View)}
	if in.ScraperID.IsZero() && in.GroupID.IsZero() && in.JobID.IsZero() {
		return scope, "", fault.Invalid(fault.InvalidRequest, "scraperId",
			"scraperId, groupId or jobId is needed")
	}
	if !in.GroupID.IsZero() {
		group, err := ownership.ReadableGroup(from.View, from.Customer, in.GroupID, "groupId")
		if err != nil {
			return scope, "", err
		}
		owner = group.Customer
	}
	if !in.ScraperID.IsZero() {
		scraper, err := ownership.ReadableScraper(from.View, from.Customer, in.ScraperID,
			"scraperId")
		if err != nil {
			return scope, "", err
		}
		if in.GroupID.IsZero() {
			scope.Group, owner = scraper.Group, scraper.Customer
		}
	}
	if !in.JobID.IsZero() {
		job, err := readableRun(ctx, history, from.View, from.Customer, in.JobID, "jobId")
		if err != nil {
			return scope, "", err
		}
		scope.Jobs = []ids.ID{job.ID}
		if in.GroupID.IsZero() {
			scope.Group, owner = job.Group, job.Customer
		}
	}
	return scope, owner, nil
}

// identity is what a cursor is bound to. A changed filter of a category invalidates it.
func (in *selection) identity(customer string, named []*client.Category) []string {
	identity := []string{"data", customer, in.ScraperID.String(), in.GroupID.String(),
		in.JobID.String(), fmt.Sprint(in.IsLastRun), in.Filters}
	for _, category := range named {
		identity = append(identity, category.ID.String(), string(category.Filters))
	}
	if in.Sort != "" {
		identity = append(identity, "sort", in.Sort)
	}
	return identity
}

// members are the members of the rows that are wanted.
func (in *selection) members() (kept export.Members, err error) {
	if kept.Fields, err = api.ReadMembers(in.Fields, "fields", maxFields); err != nil {
		return kept, err
	}
	without, err := api.ReadMembers(in.Without, "without", maxFields)
	if err != nil || without == nil {
		return kept, err
	}
	if kept.Fields != nil {
		return kept, fault.Invalid(fault.InvalidRequest, "without",
			"fields and without exclude each other")
	}
	kept.Without = make(map[string]bool, len(without))
	for _, name := range without {
		kept.Without[name] = true
	}
	return kept, nil
}

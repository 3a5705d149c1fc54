package scrapers

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

type listRequest struct {
	Q            string   `query:"q" max:"200" doc:"Text in the name; case does not matter"`
	GroupID      ids.ID   `query:"groupId"`
	HasRunWithin string   `query:"hasRunWithin" pattern:"^[1-9][0-9]{0,3}[mhdw]$" doc:"Only scrapers with a run launched in the last minutes, hours, days or weeks: 7d"`
	Sort         string   `query:"sort" agent:"hidden" max:"64" code:"invalid_sort" doc:"name or createdAt, then asc or desc; default: newest first"`
	From         api.Time `query:"from" agent:"hidden" doc:"Created at this time or later"`
	To           api.Time `query:"to" agent:"hidden" doc:"Created before this time"`
	Limit        int      `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor       string   `query:"cursor" max:"1024" doc:"nextCursor of the previous page, with all other parameters unchanged"`
}

// Validate implements operation.Validator.
func (in *listRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// placeName is how many bytes of a name a cursor contains if names are the order.
const placeName = 256

// listPlace is the last scraper of the page before.
type listPlace struct {
	CreatedAt int64  `json:"c"`
	ID        ids.ID `json:"i"`
	Name      []byte `json:"n,omitempty"` // case-folded; only if names are the order
}

// list is GET /api/scraper/list.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_scrapers", Routes: operation.Routes("GET /api/scraper/list"), Group: group,
		Summary:     "Lists the customer's scrapers, newest first by default",
		Description: "A page of large scrapers may have fewer than limit although more follow.",
		Access:      auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidCursor, fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) (api.CursorPage[Scraper],
		error) {
		page := api.CursorPage[Scraper]{Items: []Scraper{}}
		order, err := in.order()
		if err != nil {
			return page, err
		}
		read := api.ReadWithin(in.From, in.To, "scrapers", from.Customer, in.Q,
			in.GroupID.String(), in.HasRunWithin)
		if in.Sort != "" {
			read = append(read, "sort", in.Sort)
		}
		var after *listPlace
		if in.Cursor != "" {
			after = &listPlace{}
			if err := api.ReadCursor(in.Cursor, after, read...); err != nil {
				return page, err
			}
		}
		last, size := listPlace{}, 0
		for sc := range order.of(from.View, from.Customer, after, in.filter(from.View,
			r.Clock.Now())) {
			if len(page.Items) == in.Limit || size >= api.PageBytes {
				page.HasMore = true
				break
			}
			item := NewScraper(from.View, sc)
			length, err := api.Length(item)
			if err != nil {
				return page, err
			}
			page.Items, size, last = append(page.Items, item), size+length, order.place(sc)
		}
		if page.HasMore {
			next := api.NewCursor(last, read...)
			page.NextCursor = &next
		}
		return page, nil
	})
}

// order is the order of a list of scrapers.
type order struct{ name, descending, stored bool }

func (in *listRequest) order() (o order, err error) {
	if in.Sort == "" {
		return order{descending: true, stored: true}, nil
	}
	o.name, o.descending, err = api.ReadNameSort(in.Sort)
	return o, err
}

// place is the position of a scraper in the order.
func (o order) place(s *client.Scraper) listPlace {
	place := listPlace{CreatedAt: s.CreatedAt, ID: s.ID}
	if o.name {
		name := filter.Fold(s.Spec.Name)
		place.Name = []byte(name[:min(len(name), placeName)])
	}
	return place
}

// compare compares two positions. Equal ones come newest first.
func (o order) compare(a, b listPlace) int {
	first := cmp.Compare(a.CreatedAt, b.CreatedAt)
	if o.name {
		first = bytes.Compare(a.Name, b.Name)
	}
	if o.descending {
		first = -first
	}
	return cmp.Or(first, cmp.Compare(b.CreatedAt, a.CreatedAt), bytes.Compare(b.ID[:], a.ID[:]))
}

// of returns the customer's scrapers that wanted accepts, in order, after a place (nil: all).
// Orders that the state does not keep are sorted for each page, of at most 100,000 scrapers.
func (o order) of(v *client.View, customer string, after *listPlace,
	wanted func(*client.Scraper) bool) iter.Seq[*client.Scraper] {
	behind := func(yield func(*client.Scraper) bool) {
		v.Scrapers(customer, func(s *client.Scraper) bool {
			if after != nil && o.compare(o.place(s), *after) <= 0 || !wanted(s) {
				return true
			}
			return yield(s)
		})
	}
	if o.stored {
		return behind
	}
	type standing struct {
		listPlace
		scraper *client.Scraper
	}
	var all []standing
	for s := range behind {
		all = append(all, standing{o.place(s), s})
	}
	slices.SortFunc(all, func(a, b standing) int { return o.compare(a.listPlace, b.listPlace) })
	return func(yield func(*client.Scraper) bool) {
		for _, one := range all {
			if !yield(one.scraper) {
				return
			}
		}
	}
}

func (in *listRequest) filter(v *client.View, now time.Time) func(*client.Scraper) bool {
	text, since, span := filter.Fold(in.Q), in.since(now), api.Span(in.From, in.To)
	return func(s *client.Scraper) bool {
		if !in.GroupID.IsZero() && s.Group != in.GroupID || !span.Has(s.CreatedAt) {
			return false
		}
		if text != "" && !strings.Contains(filter.Fold(s.Spec.Name), text) {
			return false
		}
		if in.HasRunWithin == "" {
			return true
		}
		queued, _, ran := lastRun(v, s)
		return ran && queued >= since
	}
}

// since is the begin of hasRunWithin in Unix milliseconds.
func (in *listRequest) since(now time.Time) int64 {
	if in.HasRunWithin == "" {
		return 0
	}
	end := len(in.HasRunWithin) - 1
	n, err := strconv.Atoi(in.HasRunWithin[:end])
	if err != nil {
		panic("scrapers: hasRunWithin was checked: " + err.Error())
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour,
		'w': 7 * 24 * time.Hour}
	return now.Add(-time.Duration(n) * units[in.HasRunWithin[end]]).UnixMilli()
}

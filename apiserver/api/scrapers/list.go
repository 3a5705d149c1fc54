package scrapers

import (
	"context"
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
	Q            string `query:"q" max:"200" doc:"Text in the name, whatever the case"`
	GroupID      ids.ID `query:"groupId"`
	HasRunWithin string `query:"hasRunWithin" pattern:"^[1-9][0-9]{0,3}[mhdw]$" doc:"A run was launched within the last minutes, hours, days or weeks: 7d"`
	Limit        int    `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor       string `query:"cursor" max:"1024" doc:"nextCursor of the page before, with otherwise equal parameters"`
}

// listPlace is the last scraper of the page before.
type listPlace struct {
	CreatedAt int64  `json:"c"`
	ID        ids.ID `json:"i"`
}

// list is GET /api/scraper/list.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_scrapers", Routes: operation.Routes("GET /api/scraper/list"), Group: group,
		Summary: "Lists the customer's scrapers, newest first",
		Description: "A page may have fewer scrapers than limit although more follow, when " +
			"they are large.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) (api.CursorPage[Scraper],
		error) {
		page := api.CursorPage[Scraper]{Items: []Scraper{}}
		read := []string{"scrapers", from.Customer, in.Q, in.GroupID.String(), in.HasRunWithin}
		var after listPlace
		if in.Cursor != "" {
			if err := api.ReadCursor(in.Cursor, &after, read...); err != nil {
				return page, err
			}
		}
		wanted := in.filter(from.View, r.Clock.Now())
		last, size, err := listPlace{}, 0, error(nil)
		from.View.Scrapers(from.Customer, func(sc *client.Scraper) bool {
			if in.Cursor != "" && !before(sc, after) || !wanted(sc) {
				return true
			}
			if len(page.Items) == in.Limit || size >= api.PageBytes {
				page.HasMore = true
				return false
			}
			item := NewScraper(from.View, sc)
			length, unwritten := api.Length(item)
			if err = unwritten; err != nil {
				return false
			}
			page.Items, size, last = append(page.Items, item), size+length,
				listPlace{sc.CreatedAt, sc.ID}
			return true
		})
		if page.HasMore {
			next := api.NewCursor(last, read...)
			page.NextCursor = &next
		}
		return page, err
	})
}

// before says whether a scraper comes behind a place in a list with the newest first.
func before(s *client.Scraper, place listPlace) bool {
	if s.CreatedAt != place.CreatedAt {
		return s.CreatedAt < place.CreatedAt
	}
	return string(s.ID[:]) < string(place.ID[:])
}

func (in *listRequest) filter(v *client.View, now time.Time) func(*client.Scraper) bool {
	text, since := filter.Fold(in.Q), in.since(now)
	return func(s *client.Scraper) bool {
		if !in.GroupID.IsZero() && s.Group != in.GroupID {
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

// since is the Unix milliseconds that hasRunWithin reaches back to.
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

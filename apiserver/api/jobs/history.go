package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rowstore"
)

type historyRequest struct {
	Filters     string   `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON filter on groupId, scraperId and state, for example {\"state\":{\"$in\":[\"PENDING\",\"RUNNING\"]}}"`
	WithDeleted bool     `query:"withDeleted" default:"false" doc:"Include runs whose rows or scraper were deleted"`
	From        api.Time `query:"from" doc:"Queued at this time or later"`
	To          api.Time `query:"to" doc:"Queued before this time"`
	Page        int      `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size        int      `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
	Sort        string   `query:"sort" max:"64" default:"started,desc" code:"invalid_sort" doc:"One of started, finished, queued, state, successLinks, errorLinks, totalLinks, itemsQuantity, totalRequests, deliveredPages, duration or chargedMicros, then asc or desc"`
}

// Validate implements operation.Validator.
func (in *historyRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// history is GET /api/scraper/load-history.
func (r Resource) history() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_scraper_jobs", Routes: operation.Routes("GET /api/scraper/load-history"),
		Group:   group,
		Summary: "Lists the customer's runs, newest first by default",
		Description: "If groupId in filters names one group that is shared with the customer, " +
			"the list has the runs in that group.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidFilter, fault.InvalidSort, fault.InvalidPage},
	}, func(ctx context.Context, from *operation.Caller, in *historyRequest) (api.Page[Job],
		error) {
		var none api.Page[Job]
		node, err := parseFilter(in.Filters)
		if err != nil {
			return none, err
		}
		budget := pattern.NewBudget(ctx, filterSteps)
		owner, wanted := whose(from.View, from.Customer, node, budget)
		order, err := parseSort(in.Sort)
		if err == nil && owner != from.Customer && order.by == rowstore.ByCharged {
			err = fault.Invalid(fault.InvalidSort, "sort",
				"what runs of a shared group were charged is its owner's to know")
		}
		if err != nil {
			return none, err
		}
		if err := api.Reach(in.Page, in.Size, "GET /api/scraper/load-history/all reads on by cursor"); err != nil {
			return none, err
		}
		var without []ids.ID
		if !in.WithDeleted {
			wanted = undeleted(from.View, wanted)
			for _, deleted := range from.View.DeletedRunsOf(owner) {
				without = append(without, deleted.Job)
			}
		}
		query := client.RunPage{Customer: owner, Wanted: wanted, Narrow: node != nil,
			Without: without, Queued: api.Span(in.From, in.To), By: order.by,
			Compare: order.compare, Descending: order.descending,
			Offset: in.Page * in.Size, Limit: in.Size}
		found, total, err := r.History.Runs(ctx, from.View, query)
		if ended := filter.ErrOf(budget); ended != nil {
			return none, ended
		}
		if err != nil {
			return none, fmt.Errorf("history: %w", err)
		}
		content := []Job{}
		for _, j := range found {
			content = append(content, NewJob(from.View, j, from.Customer))
		}
		return api.NewPage(content, total, in.Page, in.Size), nil
	})
}

// undeleted excludes the runs of deleted scrapers.
func undeleted(v *client.View,
	wanted func(rowstore.PastKind) bool) func(rowstore.PastKind) bool {
	return func(k rowstore.PastKind) bool {
		return (wanted == nil || wanted(k)) && v.Scraper(k.Scraper) != nil
	}
}

// parseFilter parses a filter on the three fields that runs are found by; nil: no filter.
func parseFilter(text string) (filter.Node, error) {
	if text == "" {
		return nil, nil
	}
	node, err := filter.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := filter.Each(node, checkCompare); err != nil {
		return nil, err
	}
	return node, nil
}

// filterSteps pay for the patterns of a filter on runs: a second at worst, or a hundred thousand
// runs with usual patterns.
const filterSteps = 20_000_000

// whose returns the owner of the runs that a filter selects, and the filter as a function; nil: all
// runs. The owner is the caller, unless the filter names one group that is shared with the caller.
func whose(v *client.View, customer string, node filter.Node, budget *pattern.Budget) (
	owner string, wanted func(rowstore.PastKind) bool) {
	if node == nil {
		return customer, nil
	}
	owner = customer
	group := v.Group(namedGroup(node))
	if group != nil && ownership.Reads(v, customer, group.Customer, group.ID) {
		owner = group.Customer
	}
	return owner, func(k rowstore.PastKind) bool {
		return (owner == customer || k.Group == group.ID) &&
			filter.Match(budget, node, map[string]any{"groupId": k.Group.String(),
				"scraperId": k.Scraper.String(), "state": k.State})
	}
}

// namedGroup returns the one group that a filter requires, or zero if it does not require one.
func namedGroup(node filter.Node) (group ids.ID) {
	switch n := node.(type) {
	case filter.And:
		for _, inner := range n {
			if group = namedGroup(inner); !group.IsZero() {
				return group
			}
		}
	case filter.Compare:
		if n.Field == "groupId" && (n.Op == filter.Eq || n.Op == filter.In) &&
			len(n.Values) == 1 && n.Values[0].Kind == filter.Text {
			group, _ = ids.Parse(n.Values[0].Text) // checkCompare has validated it
		}
	}
	return group
}

// checkCompare refuses other fields and malformed ids: a misspelt filter should not match nothing.
func checkCompare(c filter.Compare) error {
	switch c.Field {
	case "state":
		return api.CheckValues(c, model.Pending.Values())
	case "groupId", "scraperId":
		for i, v := range c.Values {
			if v.Kind != filter.Text ||
				!slices.Contains([]filter.Op{filter.Eq, filter.Ne, filter.In, filter.Nin}, c.Op) {
				continue
			}
			id, err := ids.Parse(v.Text)
			if err != nil {
				return fault.Invalid(fault.InvalidID, "filters."+c.Field,
					"must be an id of 24 hex digits")
			}
			c.Values[i].Text = id.String()
		}
	default:
		return fault.Invalid(fault.InvalidFilter, "filters."+c.Field,
			"runs are filtered by groupId, scraperId and state")
	}
	return nil
}

// order is the sort order of a page.
type order struct {
	by         rowstore.PastOrder
	compare    func(a, b *client.Job) int
	descending bool
}

// parseSort parses the sort of runs.
func parseSort(text string) (order, error) {
	field, descending, known := api.ReadSort(text)
	if !known {
		return order{}, fault.Invalid(fault.InvalidSort, "sort",
			"the direction must be asc or desc")
	}
	found, known := orders[field]
	if !known {
		return order{}, fault.Invalid(fault.InvalidSort, "sort", "runs cannot be sorted by %.100q",
			field)
	}
	found.descending = descending
	return found, nil
}

var orders = map[string]order{
	"queued":   by(rowstore.ByQueued, func(j *client.Job) int64 { return j.Queued }),
	"started":  by(rowstore.ByStarted, func(j *client.Job) int64 { return j.Started }),
	"finished": by(rowstore.ByFinished, func(j *client.Job) int64 { return j.Finished }),
	"state":    by(rowstore.ByState, func(j *client.Job) string { return string(j.State) }),
	"duration": by(rowstore.ByDuration,
		func(j *client.Job) int64 { return j.Finished - j.Started }),
	"totalLinks":     by(rowstore.ByLinks, func(j *client.Job) uint32 { return j.Links }),
	"errorLinks":     by(rowstore.ByErrors, func(j *client.Job) uint32 { return j.Errors }),
	"successLinks":   by(rowstore.BySuccess, func(j *client.Job) uint32 { return j.Success }),
	"itemsQuantity":  by(rowstore.ByItems, func(j *client.Job) uint64 { return j.Items }),
	"totalRequests":  by(rowstore.ByPages, func(j *client.Job) uint64 { return j.Pages }),
	"deliveredPages": by(rowstore.ByDelivered, func(j *client.Job) uint64 { return j.Delivered }),
	"chargedMicros":  by(rowstore.ByCharged, func(j *client.Job) int64 { return j.Charged }),
}

func by[T cmp.Ordered](name rowstore.PastOrder, key func(*client.Job) T) order {
	return order{by: name,
		compare: func(a, b *client.Job) int { return cmp.Compare(key(a), key(b)) }}
}

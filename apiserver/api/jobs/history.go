package jobs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

type historyRequest struct {
	Filters     string `query:"filters" doc:"JSON filter on groupId, scraperId and state, for example {\"state\":{\"$in\":[\"PENDING\",\"RUNNING\"]}}"`
	WithDeleted bool   `query:"withDeleted" default:"false"`
	Page        int    `query:"page" default:"0" min:"0" code:"invalid_page"`
	Size        int    `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
	Sort        string `query:"sort" default:"started,desc" code:"invalid_sort" doc:"A field, then asc or desc: started, finished, queued, state, successLinks, errorLinks, totalLinks, itemsQuantity, totalRequests, deliveredPages, duration or chargedMicros"`
}

// history is GET /api/scraper/load-history.
func (Resource) history() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_scraper_jobs", Routes: operation.Routes("GET /api/scraper/load-history"),
		Group:   group,
		Summary: "Lists the customer's runs, newest first unless told otherwise",
		Access:  auth.Read, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidFilter, fault.InvalidSort, fault.InvalidPage},
	}, func(_ context.Context, from *operation.Caller, in *historyRequest) (api.Page[Job], error) {
		var none api.Page[Job]
		wanted, err := parseFilter(in.Filters)
		if err != nil {
			return none, err
		}
		order, err := parseSort(in.Sort)
		if err != nil {
			return none, err
		}
		if err := api.Reach(in.Page, in.Size, "older runs are found by filters"); err != nil {
			return none, err
		}
		var found []*client.Job
		from.View.CustomerJobs(from.Customer, func(j *client.Job) bool {
			if !j.Trial() && wanted(j) {
				found = append(found, j)
			}
			return true
		})
		slices.SortFunc(found, order)
		first := min(in.Page*in.Size, len(found))
		content := []Job{}
		for _, j := range found[first:min(first+in.Size, len(found))] {
			content = append(content, newJob(j))
		}
		return api.NewPage(content, int64(len(found)), in.Page, in.Size), nil
	})
}

// parseFilter reads a filter on the three fields that jobs are found by.
func parseFilter(text string) (func(*client.Job) bool, error) {
	if text == "" {
		return func(*client.Job) bool { return true }, nil
	}
	node, err := filter.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := checkFields(node); err != nil {
		return nil, err
	}
	return func(j *client.Job) bool {
		return filter.Match(node,
			map[string]any{"groupId": j.Group.String(), "scraperId": j.Scraper.String(),
				"state": string(j.State)})
	}, nil
}

// checkFields refuses other fields, and malformed ids: a misspelt filter must not answer nothing.
func checkFields(node filter.Node) error {
	var inner []filter.Node
	switch n := node.(type) {
	case filter.And:
		inner = n
	case filter.Or:
		inner = n
	case filter.Nor:
		inner = n
	case filter.Compare:
		return checkCompare(n)
	}
	for _, n := range inner {
		if err := checkFields(n); err != nil {
			return err
		}
	}
	return nil
}

func checkCompare(c filter.Compare) error {
	switch c.Field {
	case "state":
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

// parseSort reads "field,desc", or "field:desc". Equal jobs are ordered by id, so that pages
// neither overlap nor miss one.
func parseSort(text string) (func(a, b *client.Job) int, error) {
	field, direction, _ := strings.Cut(strings.Replace(text, ":", ",", 1), ",")
	by, known := orders[field]
	if !known {
		return nil, fault.Invalid(fault.InvalidSort, "sort", "runs cannot be sorted by %.100q",
			field)
	}
	switch direction {
	case "", "asc":
		return func(a, b *client.Job) int { return cmp.Or(by(a, b), byID(a, b)) }, nil
	case "desc":
		return func(a, b *client.Job) int { return cmp.Or(by(b, a), byID(b, a)) }, nil
	}
	return nil, fault.Invalid(fault.InvalidSort, "sort", "the direction must be asc or desc")
}

func byID(a, b *client.Job) int { return strings.Compare(string(a.ID[:]), string(b.ID[:])) }

var orders = map[string]func(a, b *client.Job) int{
	"queued":         by(func(j *client.Job) int64 { return j.Queued }),
	"started":        by(func(j *client.Job) int64 { return j.Started }),
	"finished":       by(func(j *client.Job) int64 { return j.Finished }),
	"state":          by(func(j *client.Job) string { return string(j.State) }),
	"successLinks":   by(func(j *client.Job) uint32 { return j.Success }),
	"errorLinks":     by(func(j *client.Job) uint32 { return j.Errors }),
	"totalLinks":     by(func(j *client.Job) uint32 { return j.Links }),
	"itemsQuantity":  by(func(j *client.Job) uint64 { return j.Items }),
	"totalRequests":  by(func(j *client.Job) uint64 { return j.Pages }),
	"deliveredPages": by(func(j *client.Job) uint64 { return j.Delivered }),
	"chargedMicros":  by(func(j *client.Job) int64 { return j.Charged }),
	"duration":       by(func(j *client.Job) int64 { return j.Finished - j.Started }),
}

func by[T cmp.Ordered](key func(*client.Job) T) func(a, b *client.Job) int {
	return func(a, b *client.Job) int { return cmp.Compare(key(a), key(b)) }
}

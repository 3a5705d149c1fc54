package api

import (
	"context"
	"net/url"
	"strconv"
)

// WorkItem is an item of background work as the server shows it.
type WorkItem struct {
	ID          string  `json:"id"`
	Kind        string  `json:"kind"`
	CustomerRef *string `json:"customerRef"`
	State       string  `json:"state"`
	Node        *string `json:"node"`
	CreatedAt   string  `json:"createdAt"`
	DueAt       string  `json:"dueAt"`
	AdvancedAt  string  `json:"advancedAt"`
	StoodStill  int64   `json:"stoodStillMillis"`
	Failures    uint32  `json:"failures"`
	Error       *string `json:"error"`
}

// WorkFilter narrows the list of background work; empty fields match everything.
type WorkFilter struct{ Kind, State, Customer string }

// Work lists background work, stuck items first; the credential must be an administrator's.
func (c *Client) Work(ctx context.Context, filter WorkFilter,
	size int) (Answer[Page[WorkItem]], error) {
	query := url.Values{"size": {strconv.Itoa(size)}}
	for name, value := range map[string]string{"kind": filter.Kind, "state": filter.State,
		"customerRef": filter.Customer} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var list Answer[Page[WorkItem]]
	err := c.get(ctx, "/api/admin/work", query, &list)
	return list, err
}

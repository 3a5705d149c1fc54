// Package ownership owns what a customer may read and use: a record of the state is the customer's
// own, or it is not there. Foreign records and missing ones get the same fault, so that nobody
// learns of another customer's. It knows no operation and no request.
package ownership

import (
	"context"
	"fmt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Scraper is a scraper of the customer. Its fault is scraper_not_found, at the field that named it.
func Scraper(v *client.View, customer string, id ids.ID, field string) (*client.Scraper, error) {
	s := v.Scraper(id)
	if s == nil || s.Customer != customer {
		return nil, fault.Invalid(fault.ScraperNotFound, field, "there is no such scraper")
	}
	return s, nil
}

// Group is a group of the customer. Its fault is not_found, at the field that named it.
func Group(v *client.View, customer string, id ids.ID, field string) (*client.Group, error) {
	g := v.Group(id)
	if g == nil || g.Customer != customer {
		return nil, fault.Invalid(fault.NotFound, field, "there is no such group")
	}
	return g, nil
}

// Job is a run of the customer that more than its caller may see: trials are none. Its fault is
// job_not_found, at the field that named it.
func Job(ctx context.Context, h *client.History, v *client.View, customer string, id ids.ID,
	field string) (*client.Job, error) {
	job, err := h.Run(ctx, v, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if job == nil || job.Customer != customer || job.Trial() {
		return nil, fault.Invalid(fault.JobNotFound, field, "there is no such job")
	}
	return job, nil
}

// Schema is a schema that the customer may read: one of its own, or a global one. Its fault is
// schema_not_found, at the field that named it.
func Schema(v *client.View, customer string, id ids.ID, field string) (*client.Schema, error) {
	s := v.ReadableSchema(customer, id.String())
	if s == nil {
		return nil, fault.Invalid(fault.SchemaNotFound, field, "there is no such schema")
	}
	return s, nil
}

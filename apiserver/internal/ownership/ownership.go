// Package ownership owns what a customer may read and use: a record of the state is the customer's
// own, or it is not there. What is in a group that was shared with it, it may read (decision 48).
// Foreign records and missing ones get the same fault, so that nobody learns of another customer's.
// It knows no operation and no request.
package ownership

import (
	"context"
	"fmt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Reads says whether the customer may read what an owner has in a group: its own, or what is shared
// with it. All that is readable but not own goes by this one check.
func Reads(v *client.View, customer, owner string, group ids.ID) bool {
	if customer == owner {
		return true
	}
	g := v.Group(group)
	return g != nil && g.Customer == owner && v.Shared(group, customer)
}

// ReadsAll says so of several groups.
func ReadsAll(v *client.View, customer, owner string, groups []ids.ID) bool {
	for _, group := range groups {
		if !Reads(v, customer, owner, group) {
			return false
		}
	}
	return true
}

// StillReads is asked while a long answer is sent. Its error says that the customer may no longer
// read what an owner has in the groups.
func StillReads(c client.Client, customer, owner string, groups ...ids.ID) func() error {
	return func() error {
		if !ReadsAll(c.View(), customer, owner, groups) {
			return fault.New(fault.NotFound, "it is not shared any more")
		}
		return nil
	}
}

// ReadableScraper is Scraper, or one whose group the customer may read.
func ReadableScraper(v *client.View, customer string, id ids.ID, field string) (*client.Scraper,
	error) {
	if s := v.Scraper(id); s != nil && Reads(v, customer, s.Customer, s.Group) {
		return s, nil
	}
	return Scraper(v, customer, id, field)
}

// ReadableGroup is Group, or one that is shared with the customer.
func ReadableGroup(v *client.View, customer string, id ids.ID, field string) (*client.Group,
	error) {
	if g := v.Group(id); g != nil && Reads(v, customer, g.Customer, id) {
		return g, nil
	}
	return Group(v, customer, id, field)
}

// ReadableJob is Job, or a run in a group that is shared with the customer.
func ReadableJob(ctx context.Context, h *client.History, v *client.View, customer string,
	id ids.ID, field string) (*client.Job, error) {
	return job(ctx, h, v, id, field, func(job *client.Job) bool {
		return Reads(v, customer, job.Customer, job.Group)
	})
}

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
		return nil, NoGroup(field)
	}
	return g, nil
}

// NoGroup is the fault of a group that is not the customer's, at the field that named it.
func NoGroup(field string) error {
	return fault.Invalid(fault.NotFound, field, "there is no such group")
}

// Job is a run of the customer that more than its caller may see: trials are none. Its fault is
// job_not_found, at the field that named it.
func Job(ctx context.Context, h *client.History, v *client.View, customer string, id ids.ID,
	field string) (*client.Job, error) {
	return job(ctx, h, v, id, field, func(job *client.Job) bool {
		return job.Customer == customer
	})
}

func job(ctx context.Context, h *client.History, v *client.View, id ids.ID, field string,
	shows func(*client.Job) bool) (*client.Job, error) {
	job, err := h.Run(ctx, v, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if job == nil || !shows(job) || job.Trial() {
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

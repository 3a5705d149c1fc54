// Package ownership decides what a customer may read and use. The customer owns a record, or it
// counts as missing. It may also read what is in a group shared with it (decision 48). Foreign and
// missing records get the same fault, so that nothing leaks about other customers. The package
// knows no operation and no request.
package ownership

import (
	"context"
	"fmt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Reads says whether the customer may read what an owner has in a group: its own, or shared with
// it. All reading of foreign records goes through this check.
func Reads(v *client.View, customer, owner string, group ids.ID) bool {
	if customer == owner {
		return true
	}
	g := v.Group(group)
	return g != nil && g.Customer == owner && v.Shared(group, customer)
}

// ReadsAll is Reads for several groups.
func ReadsAll(v *client.View, customer, owner string, groups []ids.ID) bool {
	for _, group := range groups {
		if !Reads(v, customer, owner, group) {
			return false
		}
	}
	return true
}

// StillReads returns a check for use while a long answer is sent. Its error says that the customer
// may no longer read the owner's groups.
func StillReads(c client.Client, customer, owner string, groups ...ids.ID) func() error {
	return func() error {
		if !ReadsAll(c.View(), customer, owner, groups) {
			return fault.New(fault.NotFound, "it is not shared any more")
		}
		return nil
	}
}

// ReadableScraper is Scraper, but also finds scrapers in groups that the customer may read.
func ReadableScraper(v *client.View, customer string, id ids.ID, field string) (*client.Scraper,
	error) {
	if s := v.Scraper(id); s != nil && Reads(v, customer, s.Customer, s.Group) {
		return s, nil
	}
	return Scraper(v, customer, id, field)
}

// ReadableGroup is Group, but also finds groups shared with the customer.
func ReadableGroup(v *client.View, customer string, id ids.ID, field string) (*client.Group,
	error) {
	if g := v.Group(id); g != nil && Reads(v, customer, g.Customer, id) {
		return g, nil
	}
	return Group(v, customer, id, field)
}

// ReadableJob is Job, but also finds runs in groups shared with the customer.
func ReadableJob(ctx context.Context, h *client.History, v *client.View, customer string,
	id ids.ID, field string) (*client.Job, error) {
	return job(ctx, h, v, id, field, func(job *client.Job) bool {
		return Reads(v, customer, job.Customer, job.Group)
	})
}

// Scraper is a scraper of the customer. Its fault is scraper_not_found, at the field's name.
func Scraper(v *client.View, customer string, id ids.ID, field string) (*client.Scraper, error) {
	s := v.Scraper(id)
	if s == nil || s.Customer != customer {
		return nil, fault.Invalid(fault.ScraperNotFound, field, "there is no such scraper")
	}
	return s, nil
}

// Group is a group of the customer. Its fault is not_found, at the field's name.
func Group(v *client.View, customer string, id ids.ID, field string) (*client.Group, error) {
	g := v.Group(id)
	if g == nil || g.Customer != customer {
		return nil, NoGroup(field)
	}
	return g, nil
}

// NoGroup is the fault for a group that is not the customer's, at the field's name.
func NoGroup(field string) error {
	return fault.Invalid(fault.NotFound, field, "there is no such group")
}

// Job is a run of the customer, except trials, which only their caller sees. Its fault is
// job_not_found, at the field's name.
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

// Schema is a schema that the customer may read: its own or a global one. Its fault is
// schema_not_found, at the field's name.
func Schema(v *client.View, customer string, id ids.ID, field string) (*client.Schema, error) {
	s := v.ReadableSchema(customer, id.String())
	if s == nil {
		return nil, fault.Invalid(fault.SchemaNotFound, field, "there is no such schema")
	}
	return s, nil
}

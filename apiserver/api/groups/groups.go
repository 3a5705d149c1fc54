// Package groups owns the operations on groups (specification 4.5) and on their shares (4.6).
package groups

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Groups"

// Resource has the operations on groups and their dependencies.
type Resource struct {
	Client client.Client
	Store  rowstore.Reads
	IDs    ids.Source
	Plans  *plans.Source
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.list(),
		r.put(),
		r.putStartType(),
		r.starts(),
		r.match(),
		r.previewDelete(),
		r.delete(),
		r.listShared(),
		r.share(),
		r.revoke(),
		r.recipients(),
	}
}

// Group is the specification's GroupDTO.
type Group struct {
	ID                  ids.ID      `json:"id" doc:"Empty or omitted: a new one is created"`
	Name                string      `json:"name" required:"true" min:"1" max:"200" form:"line" doc:"Need not be unique: the id identifies a group"`
	DataTable           string      `json:"dataTable" pattern:"^([a-z0-9_]{1,63})?$" doc:"Label of the group's data collection; made from the name if empty"`
	StartType           string      `json:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE" default:"MANUAL" doc:"DAILY and WEEKLY start the scrapers that have no schedule of their own; NONE pauses all"`
	ScheduleTimezone    string      `json:"scheduleTimezone" max:"64" doc:"IANA time zone of the group's starts; empty: UTC"`
	NextStart           api.Time    `json:"nextStart" stamped:"true" doc:"Null if the group does not start automatically"`
	ShouldMatchProducts bool        `json:"shouldMatchProducts" doc:"Must be true for matching"`
	RetentionCount      *int        `json:"retentionCount" min:"1" doc:"How many of each scraper's newest runs keep their rows; null: each scraper's own setting applies"`
	Quarantine          bool        `json:"quarantine" doc:"A run counts once it is COMPLETED; a run that is unlike earlier ones counts once it is released"`
	ChangeAlerts        []diff.Kind `json:"changeAlerts" doc:"Which changes between runs the notice RUN_CHANGED reports; empty: none"`
	ChangeAlertsKey     []string    `json:"changeAlertsKey" doc:"Members that identify a row for RUN_CHANGED; empty: as in comparisons of runs"`
	CustomerRef         string      `json:"customerRef" stamped:"true" doc:"The owner's customerUniqueRef"`
	ScraperCount        int         `json:"scraperCount" stamped:"true"`
	EnrichedOf          *ids.ID     `json:"enrichedOf" stamped:"true" doc:"The group whose runs were merged into this one; null: none"`
	MatchedOf           *ids.ID     `json:"matchedOf" stamped:"true" doc:"The group whose matched rows this one holds; null: none"`
	CreatedAt           api.Time    `json:"createdAt" stamped:"true"`
	UpdatedAt           api.Time    `json:"updatedAt" stamped:"true"`
}

// NewGroup converts a group to the API's form, for its owner or a reader.
func NewGroup(v *client.View, g *client.Group) Group {
	answer := Group{ID: g.ID, Name: g.Name, DataTable: g.DataTable, StartType: g.StartType,
		ShouldMatchProducts: g.ShouldMatchProducts, CustomerRef: g.Customer,
		Quarantine:   g.Quarantine,
		ChangeAlerts: []diff.Kind{}, ChangeAlertsKey: []string{},
		ScheduleTimezone: g.Zone, NextStart: api.NextGroupStart(v, g), ScraperCount: g.Scrapers,
		CreatedAt: api.Time(g.CreatedAt), UpdatedAt: api.Time(g.UpdatedAt)}
	if count := g.Retention; count > 0 {
		answer.RetentionCount = &count
	}
	if g.Alerts != nil {
		for _, kind := range g.Alerts.On {
			answer.ChangeAlerts = append(answer.ChangeAlerts, diff.Kind(kind))
		}
		answer.ChangeAlertsKey = append(answer.ChangeAlertsKey, g.Alerts.Key...)
	}
	switch of := g.Of; {
	case of.IsZero():
	case g.Made == client.Enriched:
		answer.EnrichedOf = &of
	default:
		answer.MatchedOf = &of
	}
	return answer
}

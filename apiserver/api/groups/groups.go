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
	ID                  ids.ID      `json:"id" doc:"Empty or omitted: create"`
	Name                string      `json:"name" required:"true" min:"1" max:"200" form:"line" doc:"Groups may share one: what tells them apart is the id"`
	DataTable           string      `json:"dataTable" pattern:"^([a-z0-9_]{1,63})?$" doc:"Label of the group's data collection; made from the name when empty"`
	StartType           string      `json:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE" default:"MANUAL" doc:"DAILY and WEEKLY start the scrapers without a schedule of their own; NONE pauses all"`
	ScheduleTimezone    string      `json:"scheduleTimezone" max:"64" doc:"Time zone of the group's starts, of the IANA database; empty: UTC"`
	NextStart           api.Time    `json:"nextStart" stamped:"true" doc:"Null while the group does not start by itself"`
	ShouldMatchProducts bool        `json:"shouldMatchProducts" doc:"Must be true for matching"`
	RetentionCount      *int        `json:"retentionCount" min:"1" doc:"Newest runs of each scraper whose rows are kept; null: as the scrapers say"`
	Quarantine          bool        `json:"quarantine" doc:"Runs count from COMPLETED on, and those that are unlike the runs before them once they are released"`
	ChangeAlerts        []diff.Kind `json:"changeAlerts" doc:"Which changes from run to run the notice RUN_CHANGED tells of; empty: none"`
	ChangeAlertsKey     []string    `json:"changeAlertsKey" doc:"Members that tell rows apart for it; empty: as comparisons of runs do"`
	CustomerRef         string      `json:"customerRef" stamped:"true" doc:"The owner's customerUniqueRef"`
	ScraperCount        int         `json:"scraperCount" stamped:"true"`
	EnrichedOf          *ids.ID     `json:"enrichedOf" stamped:"true" doc:"The group whose merged runs its rows are made of; null: none"`
	MatchedOf           *ids.ID     `json:"matchedOf" stamped:"true" doc:"The group whose rows were matched against the catalogue; null: none"`
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

package groups

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/schedule"
)

// GroupInput is a GroupDTO. An update may leave members out.
type GroupInput struct {
	ID                  ids.ID    `json:"id" doc:"Empty or omitted: a new one is created"`
	Name                *string   `json:"name" form:"filled-line" min:"1" max:"200" doc:"Need not be unique; required to create"`
	DataTable           *string   `json:"dataTable" pattern:"^([a-z0-9_]{1,63})?$" doc:"Label of the group's data collection; made from the name if empty"`
	StartType           *string   `json:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE" doc:"DAILY and WEEKLY start the scrapers that have no schedule of their own; NONE pauses all. Default of a new group: MANUAL."`
	ScheduleTimezone    *string   `json:"scheduleTimezone" max:"64" doc:"IANA time zone of the group's starts; empty: UTC"`
	NextStart           api.Time  `json:"nextStart" stamped:"true"`
	ShouldMatchProducts *bool     `json:"shouldMatchProducts" doc:"Must be true for matching"`
	RetentionCount      Retention `json:"retentionCount" doc:"How many of each scraper's newest runs keep their rows; overrides the scrapers' own settings. Null: those apply"`
	Quarantine          *bool     `json:"quarantine" doc:"A run counts once it is COMPLETED, and its rows are read once it has ended. A run that is unlike earlier ones counts once it is released"`
	// ChangeAlerts and ChangeAlertsKey are nil if the body leaves them out.
	ChangeAlerts    []diff.Kind `json:"changeAlerts" unique:"true" max:"3" doc:"Which changes between runs the notice RUN_CHANGED reports: ADDED, REMOVED, CHANGED; empty: none"`
	ChangeAlertsKey []string    `json:"changeAlertsKey" unique:"true" max:"5" each:"max=4096" doc:"Members that identify a row for RUN_CHANGED, such as sku; empty: as in comparisons of runs"`
	CustomerRef     string      `json:"customerRef" stamped:"true"`
	ScraperCount    int         `json:"scraperCount" stamped:"true"`
	EnrichedOf      *ids.ID     `json:"enrichedOf" stamped:"true"`
	MatchedOf       *ids.ID     `json:"matchedOf" stamped:"true"`
	CreatedAt       api.Time    `json:"createdAt" stamped:"true"`
	UpdatedAt       api.Time    `json:"updatedAt" stamped:"true"`
}

// maxRetention is the largest integer that every JSON reader reads exactly.
const maxRetention = 1<<53 - 1

// Retention is a count of runs that a body may leave out, or clear with null.
type Retention struct {
	named bool
	count int // 0: null
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Retention) UnmarshalJSON(data []byte) error {
	var count *float64
	if err := json.Unmarshal(data, &count); err != nil || count != nil &&
		(*count < 1 || *count > maxRetention || *count != math.Trunc(*count)) {
		return fault.New(fault.InvalidRequest, "must be a whole number from 1 to %d", maxRetention)
	}
	if r.named = true; count != nil {
		r.count = int(*count)
	}
	return nil
}

// Schema describes the count in the OpenAPI document.
func (Retention) Schema() *jsonschema.Schema {
	least, most := 1.0, float64(maxRetention)
	return &jsonschema.Schema{Types: []string{"integer", "null"}, Minimum: &least, Maximum: &most}
}

type putRequest struct {
	Body GroupInput `body:"json"`
}

// Validate implements operation.Validator.
func (r *putRequest) Validate() fault.List {
	if zone := r.Body.ScheduleTimezone; zone != nil {
		if err := schedule.CheckZone(*zone); err != nil {
			return fault.List{fault.Invalid(fault.InvalidRequest, "scheduleTimezone",
				"is no time zone of the IANA database, like Europe/Paris")}
		}
	}
	if r.Body.Name == nil && r.Body.ID.IsZero() {
		return fault.List{fault.Invalid(fault.InvalidRequest, "name", "is required")}
	}
	return nil
}

// put is PUT /api/scraper/group.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_group", Routes: operation.Routes("PUT /api/scraper/group"), Group: group,
		Summary: "Creates a group, or updates the one with the given id",
		Description: "Members that an update does not name stay as they are. An id that is not " +
			"one of the customer's groups is refused. With retentionCount, the rows of older " +
			"runs are deleted in the background when a run ends.",
		Access: auth.Write, Agents: operation.Adds,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.LimitReached, fault.PlanLimitReached,
			fault.FeatureNotInPlan},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Group, error) {
		put, err := in.Body.over(from)
		if err == nil {
			err = r.checkStartType(from, &put)
		}
		if err != nil && !from.OnlyAnswers() {
			return Group{}, err
		}
		if put.Create {
			put.ID = r.IDs.New()
			put.Cap = r.Plans.CapOf(from.View, from.Customer, plans.MaxGroups)
		}
		if put.DataTable == "" {
			put.DataTable = tableName(put.Name)
		}
		made, err := client.Do(ctx, r.Client, put, from.Call)
		if errors.Is(err, fault.New(fault.GroupNotFound, "")) {
			// specification 7: updating something that the customer does not have is a 400
			return Group{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
		}
		if err != nil {
			return Group{}, err
		}
		return NewGroup(r.Client.View(), &made), nil
	})
}

// checkStartType refuses a start type that the customer's plan lacks, unless the group already has
// it. A new group may be MANUAL under any plan.
func (r Resource) checkStartType(from *operation.Caller, put *client.PutGroup) error {
	has := "MANUAL"
	if !put.Create {
		has = from.View.Group(put.ID).StartType
	}
	needs := featureOf(put.StartType)
	if needs == "" || put.StartType == has {
		return nil
	}
	return r.Plans.Check(from.View, from.Customer, needs)
}

// over makes the command. Members that the body leaves out stay as they are, or get a default. The
// command has what the body names even beside an error, since a repeated call is answered by it.
func (b *GroupInput) over(from *operation.Caller) (client.PutGroup, error) {
	put := client.PutGroup{Create: b.ID.IsZero(), ID: b.ID, Customer: from.Customer,
		StartType: "MANUAL"}
	var missing error
	if !put.Create {
		var known *client.Group
		if known, missing = ownership.Group(from.View, from.Customer, b.ID, "id"); missing != nil {
			known = &client.Group{}
		}
		put.Name, put.DataTable = known.Name, known.DataTable
		put.StartType, put.ShouldMatchProducts = known.StartType, known.ShouldMatchProducts
		put.Retention, put.Zone = known.Retention, known.Zone
		put.Quarantine, put.Alerts = known.Quarantine, known.Alerts
		put.Left = b.left()
		put.Filled = put.Left != 0
	}
	if b.RetentionCount.named {
		put.Retention = b.RetentionCount.count
	}
	setNamed(&put.Name, b.Name)
	setNamed(&put.DataTable, b.DataTable)
	setNamed(&put.StartType, b.StartType)
	setNamed(&put.Zone, b.ScheduleTimezone)
	setNamed(&put.Quarantine, b.Quarantine)
	setNamed(&put.ShouldMatchProducts, b.ShouldMatchProducts)
	var err error
	put.Alerts, err = b.alerts(put.Alerts, put.Retention)
	return put, cmp.Or(missing, err)
}

// left returns the members that the body leaves out.
func (b *GroupInput) left() (left client.GroupMembers) {
	for _, m := range []struct {
		member client.GroupMembers
		left   bool
	}{
		{client.GroupName, b.Name == nil},
		{client.GroupDataTable, b.DataTable == nil},
		{client.GroupStartType, b.StartType == nil},
		{client.GroupMatching, b.ShouldMatchProducts == nil},
		{client.GroupRetention, !b.RetentionCount.named},
		{client.GroupZone, b.ScheduleTimezone == nil},
		{client.GroupQuarantine, b.Quarantine == nil},
		{client.GroupAlertsOn, b.ChangeAlerts == nil},
		{client.GroupAlertsKey, b.ChangeAlertsKey == nil},
	} {
		if m.left {
			left |= m.member
		}
	}
	return left
}

// alerts merges the body's alerts into had. retention is how many runs keep their rows.
func (b *GroupInput) alerts(had *client.Alerts, retention int) (*client.Alerts, error) {
	wants := client.Alerts{}
	if had != nil {
		wants = *had
	}
	if b.ChangeAlerts != nil {
		wants.On = nil
		for _, kind := range b.ChangeAlerts {
			wants.On = append(wants.On, string(kind))
		}
	}
	if b.ChangeAlertsKey != nil {
		wants.Key = b.ChangeAlertsKey
	}
	for _, name := range wants.Key {
		if !filter.IsField(name) {
			return nil, fault.Invalid(fault.InvalidRequest, "changeAlertsKey",
				`needs a field's name of 1 to %d bytes, without control characters, " or \`,
				filter.MaxFieldBytes)
		}
	}
	switch {
	case len(wants.On) == 0 && len(b.ChangeAlertsKey) > 0:
		return nil, fault.Invalid(fault.InvalidRequest, "changeAlertsKey",
			"needs changeAlerts beside it")
	case len(wants.On) == 0:
		return nil, nil
	case retention == 1:
		return nil, fault.Invalid(fault.InvalidRequest, "changeAlerts",
			"needs the rows of two runs: raise retentionCount or clear it")
	}
	return &wants, nil
}

// setNamed sets a value if the body contains it.
func setNamed[T any](value, given *T) {
	if given != nil {
		*value = *given
	}
}

// tableName derives a label from a group's name: lower-case letters, digits and single underscores.
func tableName(name string) string {
	var label strings.Builder
	gap := false
	for _, c := range strings.ToLower(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			gap = label.Len() > 0
			continue
		}
		if gap {
			label.WriteByte('_')
			gap = false
		}
		label.WriteRune(c)
		if label.Len() >= 62 {
			break
		}
	}
	if label.Len() == 0 {
		return "data"
	}
	return label.String()
}

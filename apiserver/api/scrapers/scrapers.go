// Package scrapers owns the operations on saved scrapers (specification 4.1), except running them.
// It defines what a scraper's body may contain, and its two public forms.
package scrapers

import (
	"encoding/json"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules/ecb"
)

const group = "Scrapers"

// statsRuns is how many ended runs a scraper's statistics cover.
const statsRuns = 10

// Resource has the operations on saved scrapers and their dependencies.
type Resource struct {
	Client client.Proposer
	Reader client.Reader
	Store  rowstore.Reads
	Clock  clock.Clock
	IDs    ids.Source
	Guard  Guard
	Plans  *plans.Source
	// ExchangeRates are the rates of currency rules.
	ExchangeRates ecb.Rates
	Ceilings      Ceilings
	// KeepsBodies says that there is a store for bodies.
	KeepsBodies bool
}

// Guard is the address check, without DNS.
type Guard interface {
	// CheckURL reports whether an address can be crawled. Its error has the code INVALID_URL.
	CheckURL(url string) error
}

// Ceilings are the upper limits of a scraper's politeness settings (decision 17).
type Ceilings struct {
	RequestsPerSecond float64
	Connections       int
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.put(),
		r.putV2(),
		r.getV2(),
		r.get(),
		r.list(),
		r.starts(),
		r.retention(),
		r.previewDelete(),
		r.delete(),
		r.previewRule(),
		r.parameters(),
	}
}

// Recipe has the members that both public forms of a scraper share.
type Recipe struct {
	ID                      ids.ID                  `json:"id" doc:"Empty or omitted: a new one is created"`
	Name                    string                  `json:"name" form:"filled-line" required:"true" min:"1" max:"200" doc:"Unique per customer; for a FILE scraper, unique in its group"`
	GroupRef                ids.ID                  `json:"groupRef" required:"true" doc:"Id of the owning group"`
	Type                    model.ScraperType       `json:"type" required:"true" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS,APPLICATION_LD_JSON,AI_CONF,MARKETPLACE,SEARCH_ENGINE_SEARCH,FILE" doc:"FILE scrapers are created by uploads, and saved here with their id"`
	SourceConfig            model.SourceConfig      `json:"sourceConfig" required:"true"`
	ItemsConfig             []model.Field           `json:"itemsConfig" max:"500" doc:"The fields of a row, in their order"`
	PostProcessRules        []model.PostProcessRule `json:"postProcessRules" max:"100" doc:"Applied to each row, in this order; a rule sees what earlier rules wrote"`
	Schedule                string                  `json:"schedule" max:"128" form:"line" doc:"Cron expression of five fields for automatic starts, such as 0 6 * * mon-fri; empty: it starts with its group"`
	ScheduleTimezone        string                  `json:"scheduleTimezone" max:"64" doc:"IANA time zone of schedule; empty: UTC"`
	NextStart               api.Time                `json:"nextStart" stamped:"true" doc:"By its own schedule or with its group; null if it does not start automatically"`
	Config                  *model.ScraperConfig    `json:"config"`
	CreatedAt               api.Time                `json:"createdAt" stamped:"true"`
	UpdatedAt               api.Time                `json:"updatedAt" stamped:"true"`
	LastRunState            *model.JobState         `json:"lastRunState" stamped:"true" doc:"State of the newest run; null before the first"`
	EffectiveRetentionCount *int                    `json:"effectiveRetentionCount" stamped:"true" doc:"How many of the newest runs keep their rows: the group's count, else the scraper's; null: all"`
}

// Scraper is the specification's ScraperDTO.
type Scraper struct {
	Recipe
	Schema *model.SchemaRef `json:"schema" doc:"For AI_CONF: one of the customer's schemas, or a global one. A run uses its content at launch."`
}

// EnrichedScraper is the specification's ScraperSuperDTO. Its additional members are accepted and
// ignored, so that an answer can be edited and sent back.
type EnrichedScraper struct {
	Recipe
	Schema      *SchemaWithContent `json:"schema"`
	ConfigValid bool               `json:"configValid" stamped:"true" doc:"True if a run could start with this configuration"`
	Group       *ScraperGroup      `json:"group" stamped:"true"`
	RunStats    RunStats           `json:"runStats" stamped:"true"`
}

// SchemaWithContent is an extraction schema with its document.
type SchemaWithContent struct {
	ID      string          `json:"id" required:"true" max:"64"`
	Content json.RawMessage `json:"content" stamped:"true" doc:"Null if the schema was deleted"`
}

// ScraperGroup is the group of a scraper.
type ScraperGroup struct {
	ID        ids.ID `json:"id"`
	Name      string `json:"name"`
	DataTable string `json:"dataTable"`
}

// RunStats summarizes a scraper's last ended runs.
type RunStats struct {
	LastNRuns int     `json:"lastNRuns" doc:"Ended runs counted here, at most the last 10"`
	Successes int     `json:"successes" doc:"COMPLETED runs among them"`
	Failures  int     `json:"failures" doc:"FAILED runs among them"`
	AvgRows   float64 `json:"avgRows" doc:"Rows per run counted here"`
}

func newRecipe(v *client.View, s *client.Scraper) Recipe {
	r := Recipe{ID: s.ID, Name: s.Spec.Name, GroupRef: s.Group, Type: s.Spec.Type,
		SourceConfig: s.Spec.SourceConfig,
		ItemsConfig:  s.Spec.ItemsConfig, PostProcessRules: s.Spec.PostProcessRules,
		Schedule: s.Spec.Schedule, ScheduleTimezone: s.Spec.ScheduleTimezone,
		NextStart: api.NextStart(v, s),
		Config:    s.Spec.Config, CreatedAt: api.Time(s.CreatedAt),
		UpdatedAt: api.Time(s.UpdatedAt)}
	if r.ItemsConfig == nil {
		r.ItemsConfig = []model.Field{}
	}
	if r.PostProcessRules == nil {
		r.PostProcessRules = []model.PostProcessRule{}
	}
	if off := r.SourceConfig.Prelaunch; off != nil && off.Tokens == nil {
		prelaunch := *off
		prelaunch.Tokens, r.SourceConfig.Prelaunch = []model.TokenRule{}, &prelaunch
	}
	if r.Config == nil {
		r.Config = &model.ScraperConfig{}
	}
	if s.Tag != "" {
		config := *r.Config
		config.EndpointTag, r.Config = s.Tag, &config
	}
	if _, state, ran := lastRun(v, s); ran {
		r.LastRunState = &state
	}
	if count := client.Retained(v, s); count > 0 {
		r.EffectiveRetentionCount = &count
	}
	return r
}

// lastRun returns when a scraper's last run was queued, and its state.
func lastRun(v *client.View, s *client.Scraper) (queued int64, state model.JobState, ran bool) {
	if job := v.Job(s.LastJob); job != nil {
		return job.Queued, job.State, true
	}
	if s.Past == nil || s.LastJob.IsZero() || s.Past.Newest == 0 {
		return 0, "", false
	}
	return s.Past.Newest, s.Past.State, true
}

// NewScraper converts a scraper to the API's form.
func NewScraper(v *client.View, s *client.Scraper) Scraper {
	return Scraper{Recipe: newRecipe(v, s), Schema: s.Spec.Schema}
}

func newEnriched(v *client.View, s *client.Scraper) EnrichedScraper {
	recipe, _ := v.RecipeOf(s.Customer, &s.Spec, s.Tag) // without its schema it is not valid
	super := EnrichedScraper{Recipe: newRecipe(v, s), RunStats: newStats(v, s),
		ConfigValid: len(extract.Validate(recipe)) == 0 &&
			(s.ListRun || launch.StartURL(&s.Spec) != "" ||
				len(s.Spec.SourceConfig.Queries) > 0 || launch.SiteOf(v, s) != nil)}
	if s.Spec.Schema != nil {
		super.Schema = &SchemaWithContent{ID: s.Spec.Schema.ID, Content: recipe.Schema}
	}
	if g := v.Group(s.Group); g != nil {
		super.Group = &ScraperGroup{ID: g.ID, Name: g.Name, DataTable: g.DataTable}
	}
	return super
}

func newStats(v *client.View, s *client.Scraper) RunStats {
	var stats RunStats
	rows := uint64(0)
	count := func(state model.JobState, items uint64) bool {
		stats.LastNRuns++
		rows += items
		switch state {
		case model.Completed:
			stats.Successes++
		case model.Failed:
			stats.Failures++
		}
		return stats.LastNRuns < statsRuns
	}
	v.ScraperJobs(s.ID, func(j *client.Job) bool {
		return !j.Closed || j.Unlisted() || count(j.State, j.Items)
	})
	if stats.LastNRuns < statsRuns {
		s.Past.EachEnded(count)
	}
	if stats.LastNRuns > 0 {
		stats.AvgRows = float64(rows) / float64(stats.LastNRuns)
	}
	return stats
}

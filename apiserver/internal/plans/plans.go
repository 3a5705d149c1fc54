// Package plans owns the catalogue of legacy plans (decision 39): what each costs, which features
// it has and how many of a thing it allows. It is the one among the replicated settings. Until
// there is one, it is the file of the process, or the one that comes with the program. Which plan a
// customer has is in the control plane, and who gates what is said by operations.
package plans

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"shoal.dev/shoal/controlplane/client"
)

// Feature is what a plan has or has not.
type Feature string

// The features (specification 2.10).
const (
	ManualRun             Feature = "MANUAL_RUN"
	DailyScheduler        Feature = "DAILY_SCHEDULER"
	WeeklyScheduler       Feature = "WEEKLY_SCHEDULER"
	SiteMap               Feature = "SITE_MAP"
	DataSharing           Feature = "DATA_SHARING"
	DataEnrichment        Feature = "DATA_ENRICHMENT"
	TextMatching          Feature = "TEXT_MATCHING"
	DataCharts            Feature = "DATA_CHARTS"
	ExternalAPI           Feature = "EXTERNAL_API"
	DataExport            Feature = "DATA_EXPORT"
	GroupCustomCategories Feature = "GROUP_CUSTOM_CATEGORIES"
	API                   Feature = "API"
)

// Features are all that there are.
func Features() []Feature {
	return []Feature{ManualRun, DailyScheduler, WeeklyScheduler, SiteMap, DataSharing,
		DataEnrichment, TextMatching, DataCharts, ExternalAPI, DataExport, GroupCustomCategories,
		API}
}

// Cap is a limit that plans have.
type Cap string

// The caps (specification 2.10).
const (
	MaxScrapers                Cap = "MAX_SCRAPERS"
	MaxGroups                  Cap = "MAX_GROUPS"
	DataSharingLimits          Cap = "DATA_SHARING_LIMITS"
	GroupCustomCategoriesLimit Cap = "GROUP_CUSTOM_CATEGORIES_LIMIT"
)

// Caps are all that there are.
func Caps() []Cap {
	return []Cap{MaxScrapers, MaxGroups, DataSharingLimits, GroupCustomCategoriesLimit}
}

// Names are the plans that a catalogue may have.
func Names() []string { return []string{client.StarterPlan, "BASIC", "PRO", "BUSINESS", "TEAM"} }

const (
	maxFile  = 1 << 20   // bytes
	maxPrice = 100_000.0 // EUR a month
	maxCap   = 1_000_000_000
	maxLevel = 1_000_000
)

// Plan is an entry of the catalogue.
type Plan struct {
	Name     string      `json:"plan"`
	Level    int         `json:"level"`        // of two plans the dearer one has the higher
	Price    float64     `json:"monthlyPrice"` // EUR, in whole cents
	Features []Feature   `json:"features"`
	Limits   map[Cap]int `json:"limits"` // one that is missing limits nothing
	// Offered says that customers may choose it by themselves.
	Offered bool `json:"offered,omitempty"`
}

// Cents is what a month costs.
func (p *Plan) Cents() int64 { return int64(math.Round(p.Price * 100)) }

// Catalogue is every plan, by level. It is never changed.
type Catalogue struct{ plans []Plan }

//go:embed default.json
var standard []byte

// Standard is the catalogue that comes with the program.
func Standard() *Catalogue {
	c, err := Parse(standard)
	if err != nil {
		panic(err) // a part of the program
	}
	return c
}

// Parse reads an operator's catalogue, JSON. Its errors say what is wrong with which plan.
func Parse(file []byte) (*Catalogue, error) {
	if len(file) > maxFile {
		return nil, fmt.Errorf("plans: the file has more than %d bytes", maxFile)
	}
	var c Catalogue
	in := json.NewDecoder(bytes.NewReader(file))
	in.DisallowUnknownFields()
	if err := in.Decode(&c.plans); err != nil {
		return nil, fmt.Errorf("plans: %w", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("plans: more than one list")
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("plans: %w", err)
	}
	return &c, nil
}

// New is a catalogue of plans. Its errors say what is wrong with which one.
func New(plans []Plan) (*Catalogue, error) {
	c := Catalogue{plans: slices.Clone(plans)}
	return &c, c.check()
}

// check puts the plans in order, and says what is wrong with which one.
func (c *Catalogue) check() error {
	slices.SortFunc(c.plans, func(a, b Plan) int { return a.Level - b.Level })
	for i := range c.plans {
		if err := c.plans[i].check(); err != nil {
			return fmt.Errorf("%q: %w", c.plans[i].Name, err)
		}
		if i > 0 && c.plans[i].Level == c.plans[i-1].Level {
			return fmt.Errorf("%q and %q have one level", c.plans[i-1].Name,
				c.plans[i].Name)
		}
	}
	return c.checkNames()
}

// checkNames demands the free plan, below all others, and each name once.
func (c *Catalogue) checkNames() error {
	if len(c.plans) == 0 || c.plans[0].Name != client.StarterPlan || c.plans[0].Cents() != 0 {
		return fmt.Errorf("%s is needed, with the lowest level, and free",
			client.StarterPlan)
	}
	for i := range c.plans {
		if again := slices.IndexFunc(c.plans, func(p Plan) bool {
			return p.Name == c.plans[i].Name
		}); again < i {
			return fmt.Errorf("%q is there twice", c.plans[i].Name)
		}
	}
	return nil
}

func (p *Plan) check() error {
	switch {
	case !slices.Contains(Names(), p.Name):
		return fmt.Errorf("plan: want one of %v", Names())
	case !(p.Price >= 0 && p.Price <= maxPrice) || math.Abs(p.Price*100-math.Round(p.Price*100)) >
		1e-6:
		return fmt.Errorf("monthlyPrice: 0 to %g EUR, in whole cents", maxPrice)
	case p.Level < -maxLevel || p.Level > maxLevel:
		return fmt.Errorf("level: -%d to %d", maxLevel, maxLevel)
	case p.Offered && p.Cents() == 0:
		return errors.New("offered: it costs nothing, and is chosen without")
	}
	if len(p.Features) > len(Features()) {
		return errors.New("features: each once")
	}
	for _, feature := range p.Features {
		if !slices.Contains(Features(), feature) {
			return fmt.Errorf("features: %q is none of %v", feature, Features())
		}
	}
	for name, most := range p.Limits {
		if !slices.Contains(Caps(), name) {
			return fmt.Errorf("limits: %q is none of %v", name, Caps())
		}
		if most < 0 || most > maxCap {
			return fmt.Errorf("limits: %s: 0 to %d", name, maxCap)
		}
	}
	return nil
}

// Plans are all, by level.
func (c *Catalogue) Plans() []Plan { return c.plans }

// Find is a plan, nil when there is none of that name.
func (c *Catalogue) Find(name string) *Plan {
	for i := range c.plans {
		if c.plans[i].Name == name {
			return &c.plans[i]
		}
	}
	return nil
}

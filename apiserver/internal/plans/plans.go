// Package plans has the catalogue of legacy plans (decision 39): their prices, features and caps.
// The catalogue is in the replicated settings. Until it is set there, it is the process's file, or
// else the built-in one. The control plane knows each customer's plan, and operations declare what
// they need of it.
package plans

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/jsontext"
)

// Feature is something that a plan may include.
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

// features are all features.
func features() []Feature {
	return []Feature{ManualRun, DailyScheduler, WeeklyScheduler, SiteMap, DataSharing,
		DataEnrichment, TextMatching, DataCharts, ExternalAPI, DataExport, GroupCustomCategories,
		API}
}

// Cap is a limit in a plan.
type Cap string

// The caps (specification 2.10).
const (
	MaxScrapers                Cap = "MAX_SCRAPERS"
	MaxGroups                  Cap = "MAX_GROUPS"
	DataSharingLimits          Cap = "DATA_SHARING_LIMITS"
	GroupCustomCategoriesLimit Cap = "GROUP_CUSTOM_CATEGORIES_LIMIT"
)

// Caps are all caps.
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
	Level    int         `json:"level"`        // the dearer of two plans has the higher level
	Price    float64     `json:"monthlyPrice"` // EUR, in whole cents
	Features []Feature   `json:"features"`
	Limits   map[Cap]int `json:"limits"` // a missing one means no limit
	// Offered says that customers may choose the plan themselves.
	Offered bool `json:"offered,omitempty"`
}

// Cents is the price of a month.
func (p *Plan) Cents() int64 { return int64(math.Round(p.Price * 100)) }

// Catalogue is all plans, by level. It is immutable.
type Catalogue struct{ plans []Plan }

//go:embed default.json
var standard []byte

// Standard is the built-in catalogue.
func Standard() *Catalogue {
	c, err := Parse(standard)
	if err != nil {
		panic(err) // a part of the program
	}
	return c
}

// Problem is what is wrong with a catalogue, and where.
type Problem struct {
	At    int    // index in the given list; -1: the list itself
	Plan  string // name of the plan there
	Field string // of that plan
	Said  string
}

// Error implements error. It names the plan and its field.
func (p *Problem) Error() string {
	if p.At < 0 {
		return p.Said
	}
	return fmt.Sprintf("%q: %s: %s", p.Plan, p.Field, p.Said)
}

// Parse parses an operator's catalogue, in JSON. Its errors say what is wrong with which plan.
func Parse(file []byte) (*Catalogue, error) {
	if len(file) > maxFile {
		return nil, fmt.Errorf("plans: the file has more than %d bytes", maxFile)
	}
	var list []Plan
	in := json.NewDecoder(bytes.NewReader(file))
	in.DisallowUnknownFields()
	if err := in.Decode(&list); err != nil {
		member, said := jsontext.Reason(err)
		return nil, fmt.Errorf("plans: %s", strings.TrimSpace(member+" "+said))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("plans: more than one list")
	}
	c, problem := New(list)
	if problem != nil {
		return nil, fmt.Errorf("plans: %w", problem)
	}
	return c, nil
}

// New makes a catalogue of plans, or says what is wrong with them.
func New(list []Plan) (*Catalogue, *Problem) {
	names, levels := map[string]bool{}, map[int]string{}
	for i := range list {
		p := &list[i]
		field, said := p.check()
		switch other, taken := levels[p.Level]; {
		case said != "":
		case names[p.Name]:
			field, said = "plan", "is there twice"
		case taken:
			field, said = "level", fmt.Sprintf("must not be that of %q: they have one level", other)
		}
		if said != "" {
			return nil, &Problem{At: i, Plan: p.Name, Field: field, Said: said}
		}
		names[p.Name], levels[p.Level] = true, p.Name
	}
	c := Catalogue{plans: slices.Clone(list)}
	slices.SortFunc(c.plans, func(a, b Plan) int { return a.Level - b.Level })
	if len(list) == 0 || c.plans[0].Name != client.StarterPlan || c.plans[0].Cents() != 0 {
		return nil, &Problem{At: -1, Said: client.StarterPlan +
			" is needed, with the lowest level, and free"}
	}
	return &c, nil
}

// check says which field is wrong and how; "" if none is.
func (p *Plan) check() (field, said string) {
	switch {
	case !slices.Contains(Names(), p.Name):
		return "plan", fmt.Sprintf("must be one of %v", Names())
	case !(p.Price >= 0 && p.Price <= maxPrice) || math.Abs(p.Price*100-math.Round(p.Price*100)) >
		1e-6:
		return "monthlyPrice", fmt.Sprintf("must be 0 to %g EUR, in whole cents", maxPrice)
	case p.Level < -maxLevel || p.Level > maxLevel:
		return "level", fmt.Sprintf("must be -%d to %d", maxLevel, maxLevel)
	case p.Offered && p.Cents() == 0:
		return "offered", "must be false: it costs nothing, and is chosen without"
	case len(p.Features) > len(features()):
		return "features", "must be there once each"
	}
	for _, feature := range p.Features {
		if !slices.Contains(features(), feature) {
			return "features", fmt.Sprintf("%q is none of %v", feature, features())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
		if !slices.Contains(Caps(), name) {
			return "limits", fmt.Sprintf("%q is none of %v", name, Caps())
		}
		if most := p.Limits[name]; most < 0 || most > maxCap {
			return "limits." + string(name), fmt.Sprintf("must be 0 to %d", maxCap)
		}
	}
	return "", ""
}

// Plans are all plans, by level.
func (c *Catalogue) Plans() []Plan { return c.plans }

// Find finds a plan by name, nil if there is none.
func (c *Catalogue) Find(name string) *Plan {
	for i := range c.plans {
		if c.plans[i].Name == name {
			return &c.plans[i]
		}
	}
	return nil
}

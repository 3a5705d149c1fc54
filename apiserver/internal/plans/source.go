package plans

import (
	"maps"
	"slices"
	"sync/atomic"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// Source is the current catalogue. It is safe for concurrent use.
type Source struct {
	own  *Catalogue // used until the settings have one
	made atomic.Pointer[madeCatalogue]
}

// madeCatalogue is a catalogue made from settings. Settings are immutable, so the pointer tells
// whether they have changed.
type madeCatalogue struct {
	from      *client.Settings
	catalogue *Catalogue
}

// NewSource makes a source with the catalogue that the process was started with.
func NewSource(own *Catalogue) *Source { return &Source{own: own} }

// In is the catalogue that is valid in a view.
func (s *Source) In(view *client.View) *Catalogue { return s.Of(view.Settings()) }

// Of is the catalogue that is valid under these settings.
func (s *Source) Of(settings *client.Settings) *Catalogue {
	if len(settings.Plans) == 0 {
		return s.own
	}
	if made := s.made.Load(); made != nil && made.from == settings {
		return made.catalogue
	}
	made := &madeCatalogue{from: settings, catalogue: fromSettings(settings.Plans)}
	s.made.Store(made)
	return made.catalogue
}

// of is the plan that restricts a customer, nil if none does. A plan that the operator has removed
// from the catalogue restricts nothing: its customers keep what they pay for.
func (s *Source) of(view *client.View, customer string) *Plan {
	return s.In(view).Find(view.Subscription(customer).Plan())
}

// Check refuses a customer whose plan lacks a feature. Its fault is feature_not_in_plan.
func (s *Source) Check(view *client.View, customer string, needs Feature) error {
	if plan := s.of(view, customer); plan != nil && !slices.Contains(plan.Features, needs) {
		return fault.New(fault.FeatureNotInPlan, "the plan %s lacks the feature %s", plan.Name,
			needs)
	}
	return nil
}

// CapOf is how many of a thing the customer's plan allows, for the command that makes one more;
// nil: no limit.
func (s *Source) CapOf(view *client.View, customer string, name Cap) *client.PlanCap {
	plan := s.of(view, customer)
	if plan == nil {
		return nil
	}
	most, limited := plan.Limits[name]
	if !limited {
		return nil
	}
	return &client.PlanCap{Plan: plan.Name, Name: string(name), Most: most}
}

// fromSettings makes a catalogue of the replicated settings, which are sorted.
func fromSettings(known []client.Plan) *Catalogue {
	c := &Catalogue{plans: make([]Plan, 0, len(known))}
	for i := range known {
		k := &known[i]
		p := Plan{Name: k.Name, Level: int(k.Level), Price: float64(k.Cents) / 100,
			Offered: k.Offered, Limits: make(map[Cap]int, len(k.Limits))}
		for _, feature := range k.Features {
			p.Features = append(p.Features, Feature(feature))
		}
		for _, limit := range k.Limits {
			p.Limits[Cap(limit.Name)] = int(limit.Most)
		}
		c.plans = append(c.plans, p)
	}
	return c
}

// Settings is the catalogue in the form of the replicated settings.
func (c *Catalogue) Settings() []client.Plan {
	settings := make([]client.Plan, 0, len(c.plans))
	for i := range c.plans {
		p := &c.plans[i]
		set := client.Plan{Name: p.Name, Level: int32(p.Level), Cents: p.Cents(),
			Offered: p.Offered}
		for _, feature := range p.Features {
			set.Features = append(set.Features, string(feature))
		}
		for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
			set.Limits = append(set.Limits, client.PlanLimit{Name: string(name),
				Most: uint32(p.Limits[name])})
		}
		settings = append(settings, set)
	}
	return settings
}

// counts count towards each cap what the commands count that add one more.
var counts = map[Cap]func(view *client.View, customer string) int{
	MaxScrapers:                (*client.View).OwnScrapers,
	MaxGroups:                  (*client.View).OwnGroups,
	DataSharingLimits:          (*client.View).SharesOf,
	GroupCustomCategoriesLimit: (*client.View).CategoriesOf,
}

// Usage is how much of each cap a customer uses, by the cap's name.
func Usage(view *client.View, customer string) map[string]int {
	usage := map[string]int{}
	for name, count := range counts {
		usage[string(name)] = count(view, customer)
	}
	return usage
}

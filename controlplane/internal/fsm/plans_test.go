package fsm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// twoPlans is a catalogue in which PRO costs cents.
func twoPlans(cents int64) []state.Plan {
	return []state.Plan{{Name: state.StarterPlan, Features: []string{"MANUAL_RUN"}},
		{Name: "PRO", Level: 1, Cents: cents, Offered: true,
			Limits: []state.PlanLimit{{Name: "MAX_GROUPS", Most: 3}}}}
}

// The first server sets the plans, and an operator overrides all servers.
func TestPlansAreSeededOnce(t *testing.T) {
	b := newBench(t)
	seed := func(cents int64) state.Settings {
		t.Helper()
		return b.must(command.SeedPlansPayload{Plans: twoPlans(cents)}).(state.Settings)
	}
	for _, brought := range []int64{7_900, 9_900, 7_900} {
		if s := seed(brought); !reflect.DeepEqual(s.Plans, twoPlans(7_900)) || s.Revision != 0 {
			t.Errorf("%d cents were brought: %+v", brought, s)
		}
	}
	set := twoPlans(8_900)
	s := b.must(command.PutSettingsPayload{By: "root", Plans: &set}).(state.Settings)
	if !reflect.DeepEqual(s.Plans, set) || s.Revision != 1 || s.ChangedBy != "root" {
		t.Errorf("set: %+v", s)
	}
	s = b.must(command.PutSettingsPayload{By: "eve", Plans: &set}).(state.Settings)
	if s.Revision != 1 || s.ChangedBy != "root" {
		t.Errorf("set again: %+v", s)
	}
	s = b.must(command.PutSettingsPayload{BillingOff: of(true)}).(state.Settings)
	if !reflect.DeepEqual(s.Plans, set) {
		t.Errorf("something else was set: %+v", s)
	}
	if s := seed(9_900); !reflect.DeepEqual(s.Plans, set) {
		t.Errorf("a server that starts changes them: %+v", s)
	}
}

// Each bound is exact, and nothing is done in part.
func TestPlansHaveBounds(t *testing.T) {
	b := newBench(t)
	most := []state.Plan{{Name: state.StarterPlan}}
	for i := range command.MaxPlans - 1 {
		p := state.Plan{Name: fmt.Sprintf("P%063d", i), Level: int32(i + 1),
			Cents: command.MaxPlanCents, Offered: true}
		for n := range command.MaxPlanTerms {
			p.Features = append(p.Features, fmt.Sprintf("F%063d", n))
			p.Limits = append(p.Limits, state.PlanLimit{Name: fmt.Sprintf("L%063d", n),
				Most: command.MaxPlanLimit})
		}
		most = append(most, p)
	}
	for name, spoil := range map[string]func(p []state.Plan) []state.Plan{
		"none": func([]state.Plan) []state.Plan { return []state.Plan{} },
		"too many": func(p []state.Plan) []state.Plan {
			return append(p, state.Plan{Name: "ONE_MORE", Level: 100})
		},
		"no free plan": func(p []state.Plan) []state.Plan { return p[1:] },
		"a free plan that costs": func(p []state.Plan) []state.Plan {
			p[0].Cents = 1
			return p
		},
		"a plan twice": func(p []state.Plan) []state.Plan { p[2].Name = p[1].Name; return p },
		"no name":      func(p []state.Plan) []state.Plan { p[1].Name = ""; return p },
		"a long name":  func(p []state.Plan) []state.Plan { p[1].Name += "x"; return p },
		"one level":    func(p []state.Plan) []state.Plan { p[2].Level = p[1].Level; return p },
		"a low price":  func(p []state.Plan) []state.Plan { p[1].Cents = -1; return p },
		"a high price": func(p []state.Plan) []state.Plan { p[1].Cents++; return p },
		"nothing is sold": func(p []state.Plan) []state.Plan {
			p[1].Cents = 0
			return p
		},
		"many features": func(p []state.Plan) []state.Plan {
			p[1].Features = append(p[1].Features, "x")
			return p
		},
		"a long feature": func(p []state.Plan) []state.Plan {
			p[1].Features = []string{strings.Repeat("x", command.MaxPlanText+1)}
			return p
		},
		"many limits": func(p []state.Plan) []state.Plan {
			p[1].Limits = append(p[1].Limits, state.PlanLimit{Name: "M"})
			return p
		},
		"a limit twice": func(p []state.Plan) []state.Plan {
			p[1].Limits = []state.PlanLimit{{Name: "L"}, {Name: "L"}}
			return p
		},
		"a high limit": func(p []state.Plan) []state.Plan {
			p[1].Limits = []state.PlanLimit{{Name: "L", Most: command.MaxPlanLimit + 1}}
			return p
		},
	} {
		bad := spoil(append([]state.Plan(nil), most...))
		b.refused(command.SeedPlansPayload{Plans: bad}, fault.InvalidRequest)
		b.refused(command.PutSettingsPayload{BillingOff: of(true), Plans: &bad},
			fault.InvalidRequest)
		if s := b.view().Settings(); len(s.Plans) > 0 || s.BillingOff || s.Revision != 0 {
			t.Errorf("%s: a part of it was done: %+v", name, s)
		}
	}
	s := b.must(command.PutSettingsPayload{Plans: &most}).(state.Settings)
	if !reflect.DeepEqual(s.Plans, most) {
		t.Errorf("the most: %+v", s)
	}
}

// The trail tells the plans' prices before and after a change, and who made it.
func TestTheTrailTellsOfPlans(t *testing.T) {
	b := newBench(t)
	b.must(command.SeedPlansPayload{Plans: twoPlans(7_900)})
	set := twoPlans(8_900)
	b.by(anAdmin, ids.ID{50}, command.PutSettingsPayload{By: "root", Plans: &set})
	set[1].Limits = nil
	b.by(anAdmin, ids.ID{51}, command.PutSettingsPayload{By: "root", Plans: &set})
	trail := b.trail()
	if len(trail) != 3 {
		t.Fatalf("told: %+v", trail)
	}
	for n, want := range []struct{ before, after string }{
		{"", " STARTER=0 PRO=7900 offered"},
		{" STARTER=0 PRO=7900 offered", " STARTER=0 PRO=8900 offered"},
		{"PRO 1  MAX_GROUPS=3; ", "PRO 1 ; "}} {
		if c := trail[n].Changes[0]; !strings.Contains(c.Before, want.before) ||
			!strings.Contains(c.After, want.after) || c.Before == c.After {
			t.Errorf("%d: told: %+v", n, c)
		}
	}
}

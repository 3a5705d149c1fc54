package admin

import (
	"fmt"

	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/pkg/fault"
)

// PlanOffer is a legacy plan in the catalogue, as operators set it (decision 39).
type PlanOffer struct {
	Plan         string          `json:"plan" required:"true" enum:"STARTER,BASIC,PRO,BUSINESS,TEAM"`
	Level        int             `json:"level" required:"true" doc:"Rank of the plan: a more expensive plan has a higher level"`
	MonthlyPrice float64         `json:"monthlyPrice" required:"true" min:"0" max:"100000" doc:"EUR, in whole cents"`
	Features     []plans.Feature `json:"features" required:"true" doc:"Features that the plan includes; all others are refused with 402"`
	Limits       map[string]int  `json:"limits" required:"true" doc:"How many of each thing the plan allows; what is not named is unlimited"`
	Offered      bool            `json:"offered" doc:"Customers may choose it themselves"`
}

// offersOf converts a catalogue to the operators' form.
func offersOf(c *plans.Catalogue) []PlanOffer {
	offers := []PlanOffer{}
	for _, p := range c.Plans() {
		offer := PlanOffer{Plan: p.Name, Level: p.Level, MonthlyPrice: p.Price,
			Features: append([]plans.Feature{}, p.Features...), Limits: map[string]int{},
			Offered: p.Offered}
		for name, most := range p.Limits {
			offer.Limits[string(name)] = most
		}
		offers = append(offers, offer)
	}
	return offers
}

// catalogueOf converts an operator's input to a catalogue. Its fault names the wrong field.
func catalogueOf(offers []PlanOffer) (*plans.Catalogue, *fault.Error) {
	all := make([]plans.Plan, 0, len(offers))
	for _, o := range offers {
		p := plans.Plan{Name: o.Plan, Level: o.Level, Price: o.MonthlyPrice, Features: o.Features,
			Limits: map[plans.Cap]int{}, Offered: o.Offered}
		for name, most := range o.Limits {
			p.Limits[plans.Cap(name)] = most
		}
		all = append(all, p)
	}
	catalogue, problem := plans.New(all)
	switch {
	case problem == nil:
		return catalogue, nil
	case problem.At < 0:
		return nil, fault.Invalid(fault.InvalidRequest, "plans", "%s", problem.Said)
	}
	return nil, fault.Invalid(fault.InvalidRequest,
		fmt.Sprintf("plans[%d].%s", problem.At, problem.Field), "%s", problem.Said)
}

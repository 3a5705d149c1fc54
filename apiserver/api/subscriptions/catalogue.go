package subscriptions

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
)

// currency is the currency of plans.
const currency = "EUR"

// PlanFeatures is a plan in the catalogue.
type PlanFeatures struct {
	Plan         string          `json:"plan" enum:"STARTER,BASIC,PRO,BUSINESS,TEAM"`
	Level        int             `json:"level" doc:"Rank of the plan: a more expensive plan has a higher level"`
	MonthlyPrice float64         `json:"monthlyPrice" doc:"EUR"`
	Features     []plans.Feature `json:"features"`
	Limits       map[string]int  `json:"limits" doc:"How many of each thing the plan allows; what is not named is unlimited"`
}

// PlanPrice is the price of a plan.
type PlanPrice struct {
	Plan    string       `json:"plan" enum:"STARTER,BASIC,PRO,BUSINESS,TEAM"`
	Monthly MonthlyPrice `json:"monthly"`
}

// MonthlyPrice is an amount of money.
type MonthlyPrice struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency" doc:"EUR"`
}

// planFeatures is GET /api/plan-features.
func (r Resource) planFeatures() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_plans", Routes: operation.Routes("GET /api/plan-features"), Group: group,
		Summary: "Lists the legacy plans with their features and limits, by level",
		Description: "A customer without a subscription is on pay-as-you-go. It has every " +
			"feature and none of these limits.",
		Access: auth.Public, Agents: operation.Reads, Rate: limits.Anonymous,
	}, func(context.Context, *operation.Caller, *struct{}) ([]PlanFeatures, error) {
		list := []PlanFeatures{}
		for _, p := range r.Plans.In(r.Client.View()).Plans() {
			entry := PlanFeatures{Plan: p.Name, Level: p.Level, MonthlyPrice: p.Price,
				Features: append([]plans.Feature{}, p.Features...), Limits: map[string]int{}}
			for name, most := range p.Limits {
				entry.Limits[string(name)] = most
			}
			list = append(list, entry)
		}
		return list, nil
	})
}

// prices is GET /api/subscription/prices.
func (r Resource) prices() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_plan_prices", Routes: operation.Routes("GET /api/subscription/prices"),
		Group: group, Summary: "Lists the prices of the plans that customers may choose, by " +
			"level",
		Access: auth.Public, Agents: operation.Reads, Rate: limits.Anonymous,
	}, func(context.Context, *operation.Caller, *struct{}) ([]PlanPrice, error) {
		list := []PlanPrice{}
		for _, p := range r.Plans.In(r.Client.View()).Plans() {
			if p.Offered {
				list = append(list, PlanPrice{Plan: p.Name,
					Monthly: MonthlyPrice{Amount: p.Price, Currency: currency}})
			}
		}
		return list, nil
	})
}

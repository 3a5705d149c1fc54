package wallet

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// Price is the price of a delivered page.
type Price struct {
	RowKey             string `json:"rowKey" doc:"Stable key, such as tier:plain"`
	Kind               string `json:"kind" enum:"TIER,PLUGIN,DOMAIN"`
	Label              string `json:"label"`
	SellingPriceMicros int64  `json:"sellingPriceMicros" doc:"Micros, millionths of a euro, per page delivered"`
}

// prices is GET /api/wallet/prices.
func (Resource) prices() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_prices", Routes: operation.Routes("GET /api/wallet/prices"), Group: group,
		Summary: "Lists the prices for runs launched now",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) ([]Price, error) {
		prices := []Price{}
		if table := from.View.CurrentPrices(); table != nil {
			for _, row := range table.Rows.Enabled() {
				prices = append(prices,
					Price{RowKey: row.RowKey, Kind: row.Kind, Label: row.Label,
						SellingPriceMicros: row.Micros})
			}
		}
		return prices, nil
	})
}

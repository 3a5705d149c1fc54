package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/price"
)

// PriceTable is a version of the prices (decision 41).
type PriceTable struct {
	Version   uint32          `json:"version" doc:"Of the newest change; the service was made with version 1"`
	Rows      []PriceTableRow `json:"rows"`
	ChangedAt api.Time        `json:"changedAt" doc:"Null: these are the prices of the program"`
	ChangedBy string          `json:"changedBy" doc:"The admin's subject"`
}

// PriceTableRow is the price of a delivered page.
type PriceTableRow struct {
	RowKey             string `json:"rowKey" required:"true" min:"1" max:"300" doc:"Stable key, such as tier:plain; each that there is, once. That of a domain is domain: and the registrable domain in lower case, such as domain:shop.example"`
	Kind               string `json:"kind" required:"true" enum:"TIER,PLUGIN,DOMAIN" doc:"Is not to be changed. A DOMAIN replaces the prices of tiers for pages of its domain"`
	Label              string `json:"label" form:"filled-line" required:"true" min:"1" max:"100" doc:"What customers read in the list, on statements and in the ledger"`
	SellingPriceMicros int64  `json:"sellingPriceMicros" required:"true" min:"0" max:"1000000000" doc:"Micros, millionths of a euro, per page delivered"`
	Enabled            bool   `json:"enabled" required:"true" doc:"False: customers do not see the row, and runs launched from now on go without what it is for. Pages of a domain then cost what their tier does"`
}

// PriceTableInput is the table that an admin sets: all rows, in the order that customers see.
type PriceTableInput struct {
	Version   uint32          `json:"version" required:"true" doc:"Of the table that the admin has seen; 409 where there is a newer one"`
	Rows      []PriceTableRow `json:"rows" required:"true" min:"1" max:"200" doc:"All rows; none may be missing, and none made up. Those of domains come and go, at most 100"`
	ChangedAt api.Time        `json:"changedAt" stamped:"true"`
	ChangedBy string          `json:"changedBy" stamped:"true"`
}

func newPriceTable(t *client.PriceTable) PriceTable {
	answer := PriceTable{Version: t.Version, Rows: []PriceTableRow{},
		ChangedAt: api.Time(t.ChangedAt), ChangedBy: t.ChangedBy}
	for _, r := range t.Rows {
		answer.Rows = append(answer.Rows, PriceTableRow{RowKey: r.RowKey, Kind: r.Kind,
			Label: r.Label, SellingPriceMicros: r.Micros, Enabled: !r.Off})
	}
	return answer
}

// prices is GET /api/admin/prices.
func (Resource) prices() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_get_prices", Routes: operation.Routes("GET /api/admin/prices"),
		Group:   group,
		Summary: "Answers all prices that runs launched now have, disabled rows included",
		Access:  auth.Admin, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (PriceTable, error) {
		table := from.View.CurrentPrices()
		if table == nil {
			table = &client.PriceTable{}
		}
		return newPriceTable(table), nil
	})
}

// checkDomains refuses new rows for domains that no page can belong to. The state cannot check
// this, because nodes of two releases have different lists of public suffixes.
func checkDomains(current *client.PriceTable, rows []PriceTableRow) error {
	for i, row := range rows {
		domain, is := strings.CutPrefix(row.RowKey, price.DomainKey(""))
		if !is || current != nil && slices.ContainsFunc(current.Rows,
			func(known price.Row) bool { return known.RowKey == row.RowKey }) {
			continue
		}
		bad := func(format string, args ...any) error {
			return fault.Invalid(fault.InvalidRequest, fmt.Sprintf("rows[%d].rowKey", i), format,
				args...)
		}
		read, err := address.Parse("http://" + domain + "/")
		switch {
		case err != nil || read.Authority != read.Host || read.Target != "/" || read.Userinfo:
			return bad("%q is no domain", domain)
		case address.IsRegistrable(domain) && read.Host == domain:
		case address.IsRegistrable(address.RegistrableDomain(read.Host)):
			return bad("%q is no registrable domain in lower case; its pages are of %s", domain,
				price.DomainKey(address.RegistrableDomain(read.Host)))
		default:
			return bad("%q is no domain that can be registered", domain)
		}
	}
	return nil
}

type putPricesRequest struct {
	Body PriceTableInput `body:"json"`
}

// putPrices is PUT /api/admin/prices.
func (r Resource) putPrices() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_put_prices", Routes: operation.Routes("PUT /api/admin/prices"),
		Group:   group,
		Summary: "Sets the prices of runs launched from now on",
		Description: "A run keeps the prices that it was launched under, to its end and in the " +
			"recount. The body has all rows of the table that was read, and its version. " +
			"A row that is disabled is not listed. Runs launched from then on do not fetch by " +
			"a disabled tier. Where all tiers of a scraper are, or its plugin is, they answer " +
			"400 type_not_runnable. The plain tier stays enabled. A row of the kind DOMAIN is the " +
			"price of a page by any tier whose start address is of the domain, its subdomains " +
			"included. Plugins keep their own. There are at most 100 of them, which may be added " +
			"and left out. A body that changes nothing " +
			"makes no version. A restore leaves the prices as they are.",
		Access: auth.Admin, Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.PricesChanged, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *putPricesRequest) (PriceTable, error) {
		if err := checkDomains(from.View.CurrentPrices(), in.Body.Rows); err != nil {
			return PriceTable{}, err
		}
		change := client.SetPrices{By: from.Subject, Version: in.Body.Version}
		for _, row := range in.Body.Rows {
			change.Rows = append(change.Rows, price.Row{RowKey: row.RowKey, Kind: row.Kind,
				Label: row.Label, Micros: row.SellingPriceMicros, Off: !row.Enabled})
		}
		set, err := client.Do(ctx, r.Client, change, from.Call)
		if err != nil {
			return PriceTable{}, err
		}
		return newPriceTable(&set), nil
	})
}

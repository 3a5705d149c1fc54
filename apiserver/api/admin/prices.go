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
	Version   uint32          `json:"version" doc:"Version of the table; it starts with 1 and every change raises it"`
	Rows      []PriceTableRow `json:"rows"`
	ChangedAt api.Time        `json:"changedAt" doc:"When the prices last changed; null: they are the program's defaults"`
	ChangedBy string          `json:"changedBy" doc:"Subject of the admin"`
}

// PriceTableRow is the price of a delivered page.
type PriceTableRow struct {
	RowKey             string `json:"rowKey" required:"true" min:"1" max:"300" doc:"Stable key, such as tier:plain, unique in the table. For a domain it is domain: and the registrable domain in lower case, such as domain:shop.example"`
	Kind               string `json:"kind" required:"true" enum:"TIER,PLUGIN,DOMAIN" doc:"Cannot be changed. A DOMAIN row replaces the tier prices for pages of its domain"`
	Label              string `json:"label" form:"filled-line" required:"true" min:"1" max:"100" doc:"Name that customers read in the price list, on statements and in the ledger"`
	SellingPriceMicros int64  `json:"sellingPriceMicros" required:"true" min:"0" max:"1000000000" doc:"Micros, millionths of a euro, per page delivered"`
	Enabled            bool   `json:"enabled" required:"true" doc:"False: customers do not see the row, and runs launched from now on do without what it prices. For a domain, pages then cost the price of their tier"`
}

// PriceTableInput is the table that an admin sets: all rows, in the order that customers see.
type PriceTableInput struct {
	Version   uint32          `json:"version" required:"true" doc:"Version of the table that the admin has read; 409 if there is a newer one"`
	Rows      []PriceTableRow `json:"rows" required:"true" min:"1" max:"200" doc:"All rows; none may be missing or invented. Only DOMAIN rows may be added and removed, at most 100"`
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
		Summary: "Returns all prices for runs launched now, disabled rows included",
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
		Summary: "Sets the prices for runs launched from now on",
		Description: "A run keeps the prices of its launch to its end, and in the recount. The " +
			"body has all rows of the table that was read, and its version. Disabled rows are " +
			"hidden from customers. Runs launched from then on do not use a disabled tier. If " +
			"all tiers of a scraper or its plugin are disabled, launches answer 400 " +
			"type_not_runnable. The plain tier cannot be disabled. A DOMAIN row is the price " +
			"of a page whose start address is in the domain or a subdomain, by any tier. " +
			"Plugins keep their own prices. DOMAIN rows may be added and left out; there are " +
			"at most 100. A body that changes nothing makes no new version. A restore does not " +
			"change the prices.",
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

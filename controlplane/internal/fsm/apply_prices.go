package fsm

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// priceRowBytes bounds a row's size in a snapshot, besides its texts.
const priceRowBytes = 24

func setPrices(tx *state.Tx, p command.SetPricesPayload) (state.PriceTable, error) {
	current := tx.CurrentPrices()
	if current == nil {
		return state.PriceTable{}, fault.New(fault.Unavailable, "the cluster has not "+
			"been created yet")
	}
	if p.Version != current.Version {
		return state.PriceTable{}, fault.Invalid(fault.PricesChanged, "version",
			"the prices are of version %d now", current.Version)
	}
	if err := checkPrices(current.Rows, p.Rows); err != nil {
		return state.PriceTable{}, err
	}
	if slices.Equal(current.Rows, p.Rows) {
		return *current, nil
	}
	total := priceBytes(p.Rows)
	tx.EachPrices(func(known *state.PriceTable) bool {
		total += priceBytes(known.Rows)
		return true
	})
	if total > command.MaxPriceBytes {
		return state.PriceTable{}, fault.New(fault.LimitReached,
			"all versions of the prices together have at most %d bytes", command.MaxPriceBytes)
	}
	return tx.AddPrices(state.PriceTable{Rows: p.Rows, ChangedAt: tx.Now, ChangedBy: p.By}), nil
}

func priceBytes(rows price.List) (bytes int) {
	for _, r := range rows {
		bytes += priceRowBytes + len(r.RowKey) + len(r.Kind) + len(r.Label)
	}
	return bytes
}

// checkPrices checks the rows' bounds, and that they are the current ones: except for domains, no
// row may be added or removed. Plain must stay on. Every fetcher has it, so a run that may use any
// tier can always run.
func checkPrices(current, rows price.List) error {
	kinds, named := map[string]string{}, map[string]bool{}
	for _, r := range current {
		kinds[r.RowKey] = r.Kind
	}
	domains := 0
	for i, r := range rows {
		bad := func(member, format string, args ...any) error {
			field := fmt.Sprintf("rows[%d].%s", i, member)
			return fault.Invalid(fault.InvalidRequest, field, format, args...)
		}
		kind, known := kinds[r.RowKey]
		if _, named := price.DomainOf(r.RowKey); named {
			kind, known = price.Domain, true
			domains++
		}
		switch {
		case !known && r.Kind == price.Domain:
			return bad("rowKey", "want domain: and a domain in lower case, such as %s",
				price.DomainKey("shop.example"))
		case !known:
			return bad("rowKey", "no page of this service is charged by such a row")
		case named[r.RowKey]:
			return bad("rowKey", "is in the table twice")
		case r.Kind != kind:
			return bad("kind", "this row is of the kind %s", kind)
		case r.Label == "" || utf8.RuneCountInString(r.Label) > command.MaxPriceLabel:
			return bad("label", "must have 1 to %d characters", command.MaxPriceLabel)
		case r.Micros < 0 || r.Micros > command.MaxPriceMicros:
			return bad("sellingPriceMicros", "must be from 0 to %d", command.MaxPriceMicros)
		case r.Off && r.RowKey == model.Plain.PriceRow():
			return bad("enabled", "the plain tier cannot be disabled: it is what every run can use")
		}
		named[r.RowKey] = true
	}
	if domains > price.MaxDomains {
		return fault.Invalid(fault.InvalidRequest, "rows", "at most %d rows of domains",
			price.MaxDomains)
	}
	for _, r := range current {
		if !named[r.RowKey] && r.Kind != price.Domain {
			return fault.Invalid(fault.InvalidRequest, "rows",
				"the row %s is missing; disable it instead", r.RowKey)
		}
	}
	return nil
}

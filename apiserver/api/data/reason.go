package data

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/scraped"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// reasonTime is how long an empty answer waits for its reason. It is right without one.
	reasonTime = 2 * time.Second
	maxNamed   = 100 // characters of a field's name in a reason
)

// reasons describes the reason of an empty answer.
const reasons = "If nothing matches because text such as 10.50 € is not compared with numbers, " +
	"the header Shoal-Reason says so."

// whyNone says why no row of scopes passes a filter, if texts are where the filter compares
// numbers; "": it does not know. It names no scraped text, which agents would take for ours.
func (r Resource) whyNone(ctx context.Context, scopes []rowstore.Scope, node filter.Node) string {
	loose, fields := filter.Loosen(node)
	if len(fields) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, reasonTime)
	defer cancel()
	for _, scope := range scopes {
		rows, _, err := r.Store.Scan(ctx, rowstore.ScanQuery{Scope: scope, Filter: loose,
			Upto: math.MaxInt64, Limit: 1, Bytes: api.PageBytes})
		if err != nil {
			return ""
		}
		for _, row := range rows {
			return ofTexts(ctx, row, fields)
		}
	}
	return ""
}

// ofTexts names the field of a row whose text holds a number but is none; "": the row has none.
func ofTexts(ctx context.Context, row json.RawMessage, fields []string) string {
	var doc map[string]any
	if err := json.Unmarshal(row, &doc); err != nil {
		return ""
	}
	for _, field := range fields {
		name, _ := scraped.Clean(field, maxNamed)
		if filter.Match(filter.NewBudget(ctx), filter.HoldsNumber(field), doc) {
			return fmt.Sprintf("The field %q has values that are text, such as prices with a "+
				"currency. They are not compared with numbers. A rule, CURRENCY_CONVERT or "+
				"REGEX_CLEAN, turns them into numbers in a new field, from the next run on. If "+
				"bodies are kept, a re-extract does so for past runs, for free.", name)
		}
	}
	return "" // a row that came meanwhile
}

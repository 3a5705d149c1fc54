package scrapers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rules"
)

type previewRuleRequest struct {
	Body struct {
		Rule        model.PostProcessRule `json:"rule" required:"true"`
		SampleValue json.RawMessage       `json:"sampleValue" doc:"The source field's value, of any type; null if left out"`
	} `body:"json"`
}

// RulePreview is the result of a rule for one value.
type RulePreview struct {
	Output   json.RawMessage `json:"output" doc:"What would be written to outputField; also null if nothing would be"`
	Rate     json.RawMessage `json:"rate,omitempty" doc:"For CURRENCY_CONVERT: what one unit of the source is worth, a number"`
	RateDate string          `json:"rateDate,omitempty" doc:"For CURRENCY_CONVERT: the day of the reference rate, yyyy-MM-dd"`
}

// previewRule is POST /api/scraper/preview-rule.
func (r Resource) previewRule() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_preview_scraper_rule", Routes: operation.Routes("POST /api/scraper/preview-rule"),
		Group:   group,
		Summary: "Applies a post-process rule to one value, without saving anything",
		Description: "The source of CURRENCY_CONVERT may be a price as sites write it, such as " +
			"1.234,50 EUR. Signs, letters and symbols around its one number are ignored. The " +
			"output is the source times the rate, without rounding. A rate between two " +
			"currencies other than the euro has 10 significant digits. On weekends and bank " +
			"holidays, the European Central Bank's previous rate applies. Rates apply from " +
			"16:00 UTC of their day. If the source is null or not a number, nothing is " +
			"written. REGEX_CLEAN takes pattern (RE2, up to 512 characters), and either " +
			"replacement or group. In replacement, $1 and ${name} stand for groups; with " +
			"group, the output is that group's text in the first match. onNoMatch is KEEP (the " +
			"unchanged source), NULL or EMPTY. ENUM_MAP looks up numbers and booleans as " +
			"written in JSON. Without a match and a default it writes nothing.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.General, Invalid: fault.SchemaValidation,
		Errors: []fault.Code{fault.SchemaValidation},
	}, func(ctx context.Context, from *operation.Caller, in *previewRuleRequest) (RulePreview,
		error) {
		ctx, leave := from.WhileThere(ctx, r.Clock)
		defer leave()
		list := []model.PostProcessRule{in.Body.Rule}
		if faults := rules.Check(ctx, list, r.ExchangeRates); len(faults) > 0 {
			for _, f := range faults {
				f.Field = strings.Replace(f.Field, "postProcessRules[0]", "rule", 1)
			}
			return RulePreview{}, faults
		}
		compiled, faults := rules.Compile(list)
		if len(faults) > 0 {
			return RulePreview{}, faults
		}
		value := in.Body.SampleValue
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		day := compiled.DayOf(ctx, r.ExchangeRates, r.Clock.Now())
		out, err := compiled.Preview(ctx, value, day)
		switch {
		case errors.Is(err, pattern.ErrExhausted):
			return RulePreview{},
				fault.Invalid(fault.SchemaValidation, "rule.params.pattern",
					"the pattern takes too long on sampleValue")
		case fault.CodeOf(err) == fault.PageRowTooLarge:
			return RulePreview{},
				fault.Invalid(fault.SchemaValidation, "sampleValue",
					"the output is larger than a row may be")
		case err != nil:
			return RulePreview{}, err
		}
		if !out.Written {
			out.Value = json.RawMessage("null")
		}
		return RulePreview{Output: out.Value, Rate: out.Rate, RateDate: out.RateDate}, nil
	})
}

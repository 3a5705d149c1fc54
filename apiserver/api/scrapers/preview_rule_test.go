package scrapers_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestPreviewRule(t *testing.T) {
	s := apitest.Start(t)
	const do = "POST /api/scraper/preview-rule"
	rule := func(kind, params, sample string) string {
		body := `{"rule":{"kind":"` + kind + `","sourceField":"a","outputField":"b","params":` +
			params + `}`
		if sample != "" {
			body += `,"sampleValue":` + sample
		}
		return body + "}"
	}
	s.Run(t,
		apitest.Scenario{Name: "a conversion", As: apitest.User, Do: do,
			Body:   rule("CURRENCY_CONVERT", `{"from":"EUR","to":"USD"}`, `"10,00 €"`),
			Status: 200, Has: map[string]any{"output": 11.684, "rate": 1.1684,
				"rateDate": "2026-04-13"}},
		apitest.Scenario{Name: "of nothing", As: apitest.User, Do: do,
			Body:   rule("CURRENCY_CONVERT", `{"from":"EUR","to":"USD"}`, `null`),
			Status: 200, Has: map[string]any{"": map[string]any{"output": nil}}},
		apitest.Scenario{Name: "a mapping", As: apitest.Reader, Do: do,
			Body:   rule("ENUM_MAP", `{"mapping":{"":{"x":[1]}}}`, ""),
			Status: 200, Has: map[string]any{
				"": map[string]any{"output": map[string]any{"x": []any{1}}}}},
		apitest.Scenario{Name: "a pattern", As: apitest.User, Do: do,
			Body: rule("REGEX_CLEAN", `{"pattern":"\\D+"}`, `"a1b2"`), Status: 200,
			Has: map[string]any{"output": "12"}},
		apitest.Scenario{Name: "a wrong rule", As: apitest.User, Do: do,
			Body: rule("REGEX_CLEAN", `{"pattern":"("}`, `"a"`), Status: 400,
			Code: "schema_validation_failed",
			Has:  map[string]any{"errors.0.field": "rule.params.pattern"}},
		apitest.Scenario{Name: "a pattern that is too large", As: apitest.User, Do: do, Status: 400,
			Code: "schema_validation_failed",
			Body: rule("REGEX_CLEAN", `{"pattern":"`+strings.Repeat("a{0,999}", 61)+`"}`, `"a"`),
			Has:  map[string]any{"errors.0.field": "rule.params.pattern"}},
		apitest.Scenario{Name: "a pattern that takes too long", As: apitest.User, Do: do,
			Status: 400, Code: "schema_validation_failed",
			Body: rule("REGEX_CLEAN", `{"pattern":"`+strings.Repeat("a{0,999}", 3)+`z"}`,
				`"`+string(make100k())+`"`),
			Has: map[string]any{"errors.0.field": "rule.params.pattern"}},
		apitest.Scenario{Name: "no reference rate", As: apitest.User, Do: do,
			Body:   rule("CURRENCY_CONVERT", `{"from":"EUR","to":"XAU"}`, `1`),
			Status: 400, Code: "schema_validation_failed",
			Has: map[string]any{"errors.0.field": "rule.params.to"}},
		apitest.Scenario{Name: "no rule", As: apitest.User, Do: do, Body: `{"sampleValue":1}`,
			Status: 400, Code: "schema_validation_failed"},
		apitest.Scenario{Name: "too much", As: apitest.User, Do: do, Status: 400,
			Code: "schema_validation_failed",
			Body: rule("REGEX_CLEAN",
				`{"pattern":".","replacement":"$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0"}`,
				`"`+string(make100k())+`"`),
			Has: map[string]any{"errors.0.field": "sampleValue"}},
		apitest.Scenario{Name: "unauthenticated", As: apitest.Nobody, Do: do,
			Body: rule("ENUM_MAP", `{"mapping":{"":1}}`, ""), Status: 401},
	)
}

func make100k() []byte {
	text := make([]byte, 100_000)
	for i := range text {
		text[i] = 'x'
	}
	return text
}

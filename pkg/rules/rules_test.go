package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules/ecb"
)

var sunday = time.Date(2025, 10, 12, 9, 0, 0, 0, time.UTC)

func today(t testing.TB) Day {
	t.Helper()
	table, err := ecb.Parse([]byte(`<Cube><Cube time="2025-10-10"><Cube currency="USD" rate="1.25"/><Cube currency="JPY" rate="176.4"/>
		<Cube currency="GBP" rate="0.87"/></Cube></Cube>`))
	if err != nil {
		t.Fatal(err)
	}
	return Day{Table: table, At: sunday}
}

func ruleOf(kind Kind, params string) model.PostProcessRule {
	r := model.PostProcessRule{Kind: string(kind), SourceField: "a", OutputField: "b"}
	if err := json.Unmarshal([]byte(params), &r.Params); err != nil {
		panic(err)
	}
	return r
}

func TestKinds(t *testing.T) {
	const usd, gbp = `{"from":"EUR","to":"USD"}`, `{"from":"USD","to":"GBP"}`
	const mapping = `{"mapping":{"":"none","1":1,"yes":true,"true":"y","x":null,"[1,2]":"list"}}`
	const mapped = `{"mapping":{"in stock":true,"x":null},"default":"?"}`
	const digits = `{"pattern":"[^0-9]+"}`
	const first = `{"pattern":"(\\d+)(x)?","group":1}`
	for _, c := range []struct {
		kind        Kind
		params, row string
		want        string // "": the row is unchanged
	}{
		{CurrencyConvert, usd, `{"a":19.99}`,
			`{"a":19.99,"b":24.9875,"b_rate":1.25,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, usd, `{"a":"1.234,50 €"}`,
			`{"a":"1.234,50 €","b":1543.125,"b_rate":1.25,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, usd, `{"a":12345678901234567890.12}`,
			`{"a":12345678901234567890.12,"b":15432098626543209862.65,"b_rate":1.25,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, usd, `{"a":-2e1}`,
			`{"a":-2e1,"b":-25,"b_rate":1.25,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, gbp, `{"a":100}`,
			`{"a":100,"b":69.6,"b_rate":0.696,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, `{"from":"JPY","to":"USD"}`, `{"a":1}`,
			`{"a":1,"b":0.0070861678,"b_rate":0.0070861678,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, `{"from":"USD","to":"USD"}`, `{"a":3}`,
			`{"a":3,"b":3,"b_rate":1,"b_rateDate":"2025-10-10"}`},
		{CurrencyConvert, usd, `{"a":null}`, ""},
		{CurrencyConvert, usd, `{"c":1}`, ""},
		{CurrencyConvert, usd, `{"a":"on request"}`, ""},
		{CurrencyConvert, usd, `{"a":"free"}`, ""},
		{CurrencyConvert, usd, `{"a":"Gratis"}`, ""},
		{CurrencyConvert, usd, `{"a":true}`, ""},
		{CurrencyConvert, usd, `{"a":1e999999999}`, ""},
		{CurrencyConvert, `{"from":"EUR","to":"XXX"}`, `{"a":1}`, ""},
		{CurrencyConvert, usd, `{"b":0,"a":4,"b_rate":0}`,
			`{"b":5,"a":4,"b_rate":1.25,"b_rateDate":"2025-10-10"}`},

		{EnumMap, mapping, `{"a":"yes"}`, `{"a":"yes","b":true}`},
		{EnumMap, mapping, `{"a":1}`, `{"a":1,"b":1}`},
		{EnumMap, mapping, `{"a":true}`, `{"a":true,"b":"y"}`},
		{EnumMap, mapping, `{"a":null}`, `{"a":null,"b":"none"}`},
		{EnumMap, mapping, `{"a":""}`, `{"a":"","b":"none"}`},
		{EnumMap, mapping, `{}`, `{"b":"none"}`},
		{EnumMap, mapping, `{"a":[1, 2]}`, `{"a":[1, 2],"b":"list"}`},
		{EnumMap, mapping, `{"a":"x"}`, `{"a":"x","b":null}`},
		{EnumMap, mapping, `{"a":"no"}`, ""},
		{EnumMap, mapping, `{"a":1.0}`, ""},
		{EnumMap, mapped, `{"a":"in stock"}`, `{"a":"in stock","b":true}`},
		{EnumMap, mapped, `{"a":"x"}`, `{"a":"x","b":"?"}`},
		{EnumMap, mapped, `{"a":null}`, `{"a":null,"b":"?"}`},
		{EnumMap, `{"mapping":{"x":1},"default":null}`, `{"a":"y"}`, `{"a":"y","b":null}`},

		{RegexClean, digits, `{"a":"EUR 1,299.00"}`, `{"a":"EUR 1,299.00","b":"129900"}`},
		{RegexClean, digits, `{"a":"12"}`, `{"a":"12","b":"12"}`},
		{RegexClean, digits, `{"a":12}`, `{"a":12,"b":12}`},
		{RegexClean, digits, `{"a":null}`, ""},
		{RegexClean, `{"pattern":"(?i)x","replacement":"<$0>"}`, `{"a":"aXbx"}`,
			`{"a":"aXbx","b":"a<X>b<x>"}`},
		{RegexClean, `{"pattern":"(?P<n>\\d)","replacement":"${n}$$"}`, `{"a":"12"}`,
			`{"a":"12","b":"1$2$"}`},
		{RegexClean, `{"pattern":"x","onNoMatch":"NULL"}`, `{"a":"y"}`, `{"a":"y","b":null}`},
		{RegexClean, `{"pattern":"x","onNoMatch":"EMPTY"}`, `{"a":"y"}`, `{"a":"y","b":""}`},
		{RegexClean, first, `{"a":"a 12x 3"}`, `{"a":"a 12x 3","b":"12"}`},
		{RegexClean, `{"pattern":"(\\d+)(x)?","group":2}`, `{"a":"12"}`, `{"a":"12","b":""}`},
		{RegexClean, first, `{"a":12}`, `{"a":12,"b":"12"}`},
		{RegexClean, first, `{"a":"none"}`, `{"a":"none","b":"none"}`},
		{RegexClean, `{"pattern":"1,2","replacement":"3"}`, `{"a":[1, 2]}`,
			`{"a":[1, 2],"b":"[3]"}`},
		{RegexClean, first, `{"a":{"b" : true}}`, `{"a":{"b" : true},"b":{"b":true}}`},
	} {
		if c.want == "" {
			c.want = c.row
		}
		compiled, faults := Compile([]model.PostProcessRule{ruleOf(c.kind, c.params)})
		if len(faults) > 0 {
			t.Errorf("%s %s: %v", c.kind, c.params, faults)
			continue
		}
		got, err := compiled.Apply(newBudget(context.Background(), 1), []byte(c.row), today(t))
		if err != nil || string(got) != c.want {
			t.Errorf("%s %s of %s: %s, %v; want %s", c.kind, c.params, c.row, got, err, c.want)
		}
	}
}

// TestChain: rules see the output of earlier rules.
func TestChain(t *testing.T) {
	clean, convert, band := ruleOf(RegexClean, `{"pattern":"[^0-9.]"}`),
		ruleOf(CurrencyConvert, `{"from":"USD","to":"EUR"}`),
		ruleOf(EnumMap, `{"mapping":{"80":"mid"},"default":"other"}`)
	clean.OutputField, convert.SourceField, convert.OutputField, band.SourceField,
		band.OutputField = "n", "n", "eur", "eur", "band"
	compiled, faults := Compile([]model.PostProcessRule{clean, convert, band})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got, err := compiled.Apply(newBudget(context.Background(), 1), []byte(`{"a":"$ 100","z":1}`),
		today(t))
	if want := `{"a":"$ 100","z":1,"n":"100","eur":80,"eur_rate":0.8,"eur_rateDate":"2025-10-10","band":"mid"}`; err != nil || string(got) != want {
		t.Errorf("row is %s, %v; want %s", got, err, want)
	}
}

// TestSourceIsAField: itemsConfig and rules name a field alike, though its column has no leading
// underscore.
func TestSourceIsAField(t *testing.T) {
	extractor, err := extract.Compile(model.Recipe{Type: model.SingleProduct,
		Fields: []model.Field{{Name: "_stock", Selector: "p", Kind: model.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := extractor.Extract(extract.Page{URL: "https://shop.test/",
		Body: []byte(`<p>yes</p>`)})
	if err != nil {
		t.Fatal(err)
	}
	rule := ruleOf(EnumMap, `{"mapping":{"yes":true},"default":false}`)
	for _, rule.SourceField = range []string{"_stock", "stock", "__stock"} {
		compiled, faults := Compile([]model.PostProcessRule{rule})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		rows, err := compiled.ApplyAll(t.Context(), page.Rows, Day{}, MaxRowBytes)
		if want := `[{"stock":"yes","b":true}]`; err != nil || fmt.Sprintf("%s", rows) != want {
			t.Errorf("%s: rows are %s, %v; want %s", rule.SourceField, rows, err, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]string{
		`12`: "12", `12.50`: "12.5", `-0.5`: "-0.5", `1E2`: "100",
		`"12.50"`: "12.5", `"12,50"`: "12.5", `"1,299.00"`: "1299", `"1.299,00 €"`: "1299",
		`"1 299,00 kr"`:    "1299",
		"\"1\u00a0299,5\"": "1299.5", `"1'299.00 CHF"`: "1299", `"CHF 1’299.–"`: "1299",
		`"US$ 1,299"`: "1299", `"1.299 €"`: "1299",
		`"1,234,567"`: "1234567", `"1.234.567,8"`: "1234567.8", `"0,125"`: "0.125",
		`"0.125"`: "0.125", `"1,2345"`: "1.2345",
		`"-5 €"`: "-5", `"−5,5"`: "-5.5", `"€ -5"`: "-5", `".99"`: "0.99", `"$.99"`: "0.99",
		`"Fr.5"`: "5", `"from 12 EUR"`: "12",
		`"Rs. 1,00,000"`: "100000", `"१२,५०"`: "12.5", `"$119. 95"`: "119.95",
		`"12k €"`: "12000", `"99 ct"`: "0.99", `"40 %"`: "", `"3.5万円"`: "", `"1.234.56"`: "",
		`""`: "", `"-"`: "", `"12-15 €"`: "", `"2 for 5"`: "", `"n/a"`: "", `null`: "", `true`: "",
		`[1]`: "", `{"a":1}`: "",
		`"` + strings.Repeat("1", 65) + `"`: "", strings.Repeat("1", 65): "", `1e101`: "",
		`1e-101`: "",
	} {
		got, ok := readAmount(json.RawMessage(text), "EUR")
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s is %v, %v; want %q", text, got, ok, want)
		}
	}
}

func TestCheck(t *testing.T) {
	named := func(source, output string) model.PostProcessRule {
		return model.PostProcessRule{Kind: "ENUM_MAP", SourceField: source, OutputField: output,
			Params: map[string]any{"mapping": map[string]any{"a": 1}}}
	}
	typed := named("a", "b")
	typed.OutputType = "DATE"
	for name, c := range map[string]struct {
		rule   model.PostProcessRule
		fields string
	}{
		"nothing":      {model.PostProcessRule{}, "sourceField outputField kind"},
		"same field":   {named("a", "a"), "outputField"},
		"same column":  {named("__a", "a"), "outputField"},
		"no column":    {named("__", "a"), "sourceField"},
		"system field": {named("a", "_a"), "outputField"},
		"date":         {named("a", "date"), "outputField"},
		"group":        {named("a", "group"), "outputField"},
		"scraperId":    {named("a", "scraperId"), "outputField"},
		"operator":     {named("a", "$gt"), "outputField"},
		"quote":        {named("a", `a"b`), "outputField"},
		"hidden":       {named("a", "pri\u202ece"), "outputField"},
		"blank":        {named("a", "  "), "outputField"},
		"long": {named(strings.Repeat("a", 257), strings.Repeat("ü", 257)),
			"sourceField outputField"},
		"fine": {named(strings.Repeat("a", 256), strings.Repeat("ü", 256)),
			""},
		"type":          {typed, "outputType"},
		"no currencies": {ruleOf(CurrencyConvert, `{}`), "params.from params.to"},
		"odd currencies": {ruleOf(CurrencyConvert, `{"from":"eur","to":7,"x":1}`),
			"params.x params.from params.to params.to"},
		"unknown currency": {ruleOf(CurrencyConvert, `{"from":"EUR","to":"XXX"}`),
			"params.to"},
		"no mapping":    {ruleOf(EnumMap, `{}`), "params.mapping"},
		"empty mapping": {ruleOf(EnumMap, `{"mapping":{}}`), "params.mapping"},
		"mapping of no object": {ruleOf(EnumMap, `{"mapping":[1]}`),
			"params.mapping params.mapping"},
		"unknown parameter": {ruleOf(EnumMap, `{"mapping":{"a":1},"defualt":1}`),
			"params.defualt"},
		"large mapping": {ruleOf(EnumMap,
			`{"mapping":{"a":"`+strings.Repeat("x", maxParams)+`"}}`), "params params.mapping"},
		"no pattern": {ruleOf(RegexClean, `{}`), "params.pattern"},
		"long pattern": {ruleOf(RegexClean,
			`{"pattern":"`+strings.Repeat("x", 513)+`"}`), "params.pattern"},
		"longest pattern": {ruleOf(RegexClean,
			`{"pattern":"`+strings.Repeat("ü", 512)+`"}`), ""},
		"no RE2": {ruleOf(RegexClean, `{"pattern":"(?=x)"}`), "params.pattern"},
		"unknown group": {ruleOf(RegexClean, `{"pattern":"(x)","group":2}`),
			"params.group"},
		"negative group": {ruleOf(RegexClean, `{"pattern":"(x)","group":-1}`),
			"params.group"},
		"group that is no number": {ruleOf(RegexClean, `{"pattern":"(x)","group":"1"}`),
			"params.group"},
		"group and replacement": {ruleOf(RegexClean,
			`{"pattern":"(x)","group":1,"replacement":""}`), "params.replacement"},
		"unknown choice": {ruleOf(RegexClean, `{"pattern":"x","onNoMatch":"DROP"}`),
			"params.onNoMatch"},
		"long replacement": {ruleOf(RegexClean,
			`{"pattern":"x","replacement":"`+strings.Repeat("x", 1025)+`"}`), "params.replacement"},
		"replacement of other type": {ruleOf(RegexClean, `{"pattern":"x","replacement":1}`),
			"params.replacement"},
	} {
		faults := Check(t.Context(), []model.PostProcessRule{named("x", "y"), c.rule},
			today(t).Table)
		var fields []string
		for _, f := range faults {
			fields = append(fields, strings.TrimPrefix(f.Field, "postProcessRules[1]."))
			if f.Code != fault.SchemaValidation {
				t.Errorf("%s: %v", name, f)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: faults at %q, want %q", name, got, c.fields)
		}
	}
	if faults := Check(t.Context(), make([]model.PostProcessRule, maxRules+1),
		nil); len(faults) != 1 || faults[0].Field != "postProcessRules" {
		t.Errorf("too many rules: %v", faults)
	}
}

// TestBounds: an output beyond the size of a row is an error and takes no memory.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 500_000)
	for params, code := range map[string]fault.Code{
		`{"pattern":"()","replacement":"` + strings.Repeat("y", 1000) + `"}`: fault.PageRowTooLarge,
		`{"pattern":"x+","replacement":"` + strings.Repeat("$0", 500) + `"}`: fault.PageRowTooLarge,
		`{"pattern":"x","replacement":"yyy"}`:                                fault.PageRowTooLarge,
		`{"pattern":"` + strings.Repeat("y{0,999}", 3) + `z","group":0}`:     fault.PageTooCostly,
	} {
		compiled, faults := Compile([]model.PostProcessRule{ruleOf(RegexClean, params)})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if _, err := compiled.Apply(newBudget(context.Background(), 1), []byte(`{"a":"`+long+`"}`),
			Day{}); fault.CodeOf(err) != code {
			t.Errorf("%.60s: %v, want %s", params, err, code)
		}
	}
	compiled, _ := Compile([]model.PostProcessRule{ruleOf(EnumMap, `{"mapping":{"a":1}}`)})
	if _, err := compiled.Apply(newBudget(context.Background(), 1), []byte(`[1]`),
		Day{}); fault.CodeOf(err) != fault.PageUnparsable {
		t.Errorf("a list as a row: %v", err)
	}
}

// TestPatternsThatAreTooLarge: short patterns that would compile to very much are refused.
func TestPatternsThatAreTooLarge(t *testing.T) {
	refused := func(field string, list ...model.PostProcessRule) {
		t.Helper()
		_, faults := Compile(list)
		if len(faults) == 0 || faults[0].Field != field ||
			faults[0].Code != fault.SchemaValidation {
			t.Errorf("%v, want a fault of %s", faults, field)
		}
	}
	refused("postProcessRules[0].params.pattern",
		ruleOf(RegexClean, `{"pattern":"`+strings.Repeat("x{0,999}", 61)+`z"}`))
	var list []model.PostProcessRule
	for range 15 {
		list = append(list, ruleOf(RegexClean, `{"pattern":"`+strings.Repeat("x{0,999}", 3)+`z"}`))
	}
	refused("postProcessRules[8].params.pattern", list...)
}

// leaving is a context that ends after a number of checks.
type leaving struct {
	context.Context
	asked, end int
}

func (l *leaving) Err() error {
	if l.asked++; l.asked > l.end {
		return context.Canceled
	}
	return nil
}

// TestWhoHasGone ends the context in the middle of a row.
func TestWhoHasGone(t *testing.T) {
	compiled, faults := Compile([]model.PostProcessRule{ruleOf(RegexClean,
		`{"pattern":".*z|x","replacement":"y"}`)})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	text := strings.Repeat("x", 100_000)
	ctx := &leaving{Context: t.Context(), end: 3}
	if _, err := compiled.Apply(newBudget(ctx, 1), []byte(`{"a":"`+text+`"}`),
		Day{}); !errors.Is(err, context.Canceled) || ctx.asked != 4 {
		t.Errorf("a row: %v after the context was asked %d times", err, ctx.asked)
	}
	ctx = &leaving{Context: t.Context(), end: 3}
	if _, err := compiled.Preview(ctx, quoted(text), Day{}); !errors.Is(err, context.Canceled) ||
		ctx.asked != 4 {
		t.Errorf("a preview: %v after the context was asked %d times", err, ctx.asked)
	}
}

// TestRowsStayRows: for any row, the result is a JSON object that begins with the same members, and
// always the same.
func TestRowsStayRows(t *testing.T) {
	day := today(t)
	compiled, faults := Compile([]model.PostProcessRule{ruleOf(CurrencyConvert,
		`{"from":"EUR","to":"USD"}`),
		ruleOf(EnumMap, `{"mapping":{"1":[1]},"default":{"x":1}}`),
		ruleOf(RegexClean, `{"pattern":".","replacement":"<$0>"}`)})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	value := rapid.OneOf(rapid.String().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(),
		rapid.Just[any](nil),
		rapid.Int64().AsAny(), rapid.SliceOf(rapid.Int()).AsAny())
	rapid.Check(t, func(t *rapid.T) {
		row, err := json.Marshal(map[string]any{"a": value.Draw(t, "a"), "0": value.Draw(t, "0"),
			"é\u2028": value.Draw(t, "é")})
		if err != nil {
			t.Skip("no JSON")
		}
		out, err := compiled.Apply(newBudget(context.Background(), 1), row, day)
		if err != nil || !json.Valid(out) {
			t.Fatalf("%s becomes %s, %v", row, out, err)
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(row, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Fatalf("%s becomes %s", row, out)
		}
		for name, value := range before {
			if string(after[name]) != string(value) {
				t.Errorf("%s: %q was %s and is %s", row, name, value, after[name])
			}
		}
		if again, _ := compiled.Apply(newBudget(context.Background(), 1), row,
			day); string(again) != string(out) {
			t.Errorf("%s and then %s", out, again)
		}
	})
}

func FuzzAmount(f *testing.F) {
	for _, text := range []string{"1.234,50 €", "-.5", "１２", "1e5", "1,2.3,4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quotedText := quoted(text)
		for _, value := range []json.RawMessage{quotedText, json.RawMessage(text)} {
			if amount, ok := readAmount(value, "EUR"); ok && !json.Valid([]byte(amount.String())) {
				t.Errorf("%q is %s", value, amount)
			}
		}
	})
}

// The rule of decision 62 completes the relative addresses of JSON, and no others.
func TestRelativeAddressesAreCompleted(t *testing.T) {
	compiled, faults := Compile([]model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "url",
		OutputField: "link", Params: map[string]any{"pattern": "^/([^/])",
			"replacement": "https://www.shop.example/$1"}}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for url, link := range map[string]string{"/p/1": "https://www.shop.example/p/1",
		"//cdn.example/1": "//cdn.example/1", "https://a.example/p/1": "https://a.example/p/1"} {
		row, err := compiled.Apply(newBudget(t.Context(), 1), []byte(`{"url":"`+url+`"}`), Day{})
		if want := `{"url":"` + url + `","link":"` + link + `"}`; err != nil || string(row) != want {
			t.Errorf("%s, want %s: %v", row, want, err)
		}
	}
}

func ExampleRules_Apply() {
	compiled, _ := Compile([]model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "price",
		OutputField: "amount",
		Params:      map[string]any{"pattern": "[^0-9.]"}}})
	row, _ := compiled.Apply(newBudget(context.Background(), 1), []byte(`{"price":"$ 12.50"}`),
		Day{})
	fmt.Println(string(row))
	// Output: {"price":"$ 12.50","amount":"12.50"}
}

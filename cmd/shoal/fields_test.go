package main

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/model"
)

func TestParseFields(t *testing.T) {
	for text, want := range map[string]model.Field{
		"title=h1":                    {Name: "title", Selector: "h1", Kind: model.Text},
		" price = .price > b ":        {Name: "price", Selector: ".price > b", Kind: model.Text},
		"link=a.more@href":            {Name: "link", Selector: "a.more", Kind: model.Attr, Attr: "href"},
		"id=div @data-id":             {Name: "id", Selector: "div", Kind: model.Attr, Attr: "data-id"},
		"mail=a[href*='@x.example']":  {Name: "mail", Selector: "a[href*='@x.example']", Kind: model.Text},
		"mail=a[href*='@x']@href":     {Name: "mail", Selector: "a[href*='@x']", Kind: model.Attr, Attr: "href"},
		"eq=a[rel=next]@xlink:href":   {Name: "eq", Selector: "a[rel=next]", Kind: model.Attr, Attr: "xlink:href"},
		"sale=.badge-sale?":           {Name: "sale", Selector: ".badge-sale", Kind: model.Exists},
		"either=h1, h2":               {Name: "either", Selector: "h1, h2", Kind: model.Text},
		"linked=a[href='/x?y=1@z']?":  {Name: "linked", Selector: "a[href='/x?y=1@z']", Kind: model.Exists},
		"query=a[href='/x?y=1']@href": {Name: "query", Selector: "a[href='/x?y=1']", Kind: model.Attr, Attr: "href"},
	} {
		got, err := parseFields([]string{text})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff([]model.Field{want}, got); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"title": "want NAME=SELECTOR", "=h1": "want NAME=SELECTOR", "a=": "want NAME=SELECTOR", "a=?": "empty", "a=@href": "empty",
		"a=b@c?": "a=b[c]?",
	} {
		if _, err := parseFields([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	for _, seed := range []string{"title=h1", "a=b@c", "a=b?", "a=b@c?", "a=@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := parseFields([]string{text})
		if err != nil {
			return
		}
		field := fields[0]
		if field.Name == "" || field.Selector == "" || (field.Kind == model.Attr) != (field.Attr != "") {
			t.Errorf("%q became %+v", text, field)
		}
	})
}

func TestEurosAreExact(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "0.00 EUR", 150: "0.00015 EUR", -150: "-0.00015 EUR", 10_000: "0.01 EUR", 1_000_000: "1.00 EUR",
		1_234_567_800_001: "1,234,567.800001 EUR", 999_999: "0.999999 EUR", 100_000: "0.10 EUR",
		math.MinInt64: "-9,223,372,036,854.775808 EUR",
	} {
		if got := euros(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64().Draw(t, "micros")
		text := strings.ReplaceAll(strings.TrimSuffix(euros(micros), " EUR"), ",", "")
		amount, ok := new(big.Rat).SetString(text)
		if !ok || amount.Cmp(big.NewRat(micros, 1_000_000)) != 0 {
			t.Errorf("%d became %s", micros, text)
		}
	})
}

func TestPrintableHoldsNoControls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, r := range printable(text) {
			if !unicode.IsGraphic(r) {
				t.Errorf("%q keeps %U", text, r)
			}
		}
	})
	if got := printable("a\x1b[2Jb\u009bc\u202ed"); got != "a [2Jb c d" {
		t.Errorf("%q", got)
	}
}

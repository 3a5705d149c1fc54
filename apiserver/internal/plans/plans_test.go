package plans_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/plans"
)

const starter = `{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [], "limits": {}}`

func TestParse(t *testing.T) {
	basic := func(members string) string {
		return "[" + starter + `, {"plan": "BASIC", "level": 1, "monthlyPrice": 12.34, ` +
			`"features": ["API"], "limits": {"MAX_GROUPS": 3}` + members + "}]"
	}
	c, err := plans.Parse([]byte(basic("")))
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Find("BASIC"); p == nil || p.Cents() != 1_234 || p.Limits[plans.MaxGroups] != 3 ||
		c.Find("PRO") != nil || len(c.Plans()) != 2 {
		t.Errorf("%+v", c.Plans())
	}
	for want, file := range map[string]string{
		"ends too early":                "",
		"must be an array":              "{}",
		"STARTER is needed":             "[]",
		"more than one":                 "[" + starter + "] []",
		"lowest level":                  strings.Replace(basic(""), `"level": 0`, `"level": 2`, 1),
		"and free":                      strings.Replace(basic(""), `"monthlyPrice": 0`, `"monthlyPrice": 1`, 1),
		"one level":                     strings.Replace(basic(""), `"level": 1`, `"level": 0`, 1),
		"there twice":                   strings.Replace(basic(""), "BASIC", "STARTER", 1),
		"must be one of":                strings.Replace(basic(""), "BASIC", "GOLD", 1),
		"whole cents":                   strings.Replace(basic(""), "12.34", "12.345", 1),
		"0 to 100000 EUR":               strings.Replace(basic(""), "12.34", "-1", 1),
		"costs nothing":                 strings.Replace(basic(`, "offered": true`), "12.34", "0", 1),
		"price is not known":            basic(`, "price": 3`),
		"monthlyPrice must be a number": strings.Replace(basic(""), "12.34", `"12.34"`, 1),
		`"FLY" is none of`:              strings.Replace(basic(""), `"API"`, `"FLY"`, 1),
		`"MAX" is none of`:              strings.Replace(basic(""), "MAX_GROUPS", "MAX", 1),
		`limits.MAX_GROUPS: must be 0 to 1000000000`: strings.Replace(basic(""), ": 3", ": -3", 1),
		"more than 1048576 ":                         strings.Repeat(" ", 1<<20+1),
	} {
		if _, err := plans.Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestStandard: a dearer plan lacks nothing that a cheaper one has, and offered plans have a price.
func TestStandard(t *testing.T) {
	all := plans.Standard().Plans()
	if len(all) != len(plans.Names()) {
		t.Errorf("%d plans", len(all))
	}
	for i := 1; i < len(all); i++ {
		for _, feature := range all[i-1].Features {
			if !strings.Contains(join(all[i].Features), string(feature)) {
				t.Errorf("%s lacks %s", all[i].Name, feature)
			}
		}
		for _, name := range plans.Caps() {
			if all[i].Limits[name] < all[i-1].Limits[name] {
				t.Errorf("%s allows less of %s", all[i].Name, name)
			}
		}
		if all[i].Price <= all[i-1].Price {
			t.Errorf("%s costs less", all[i].Name)
		}
	}
}

func join(features []plans.Feature) (text string) {
	for _, f := range features {
		text += string(f) + " "
	}
	return text
}

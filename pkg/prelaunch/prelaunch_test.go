package prelaunch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

func rules(tokens ...model.TokenRule) *model.Prelaunch {
	return &model.Prelaunch{DiscoveryURL: "https://shop.test/", Tokens: tokens}
}

func TestFind(t *testing.T) {
	const page = `<!doctype html><META NAME="csrf-token" content="a/b+c=~"><meta name="csrf-token" content="second"/>
		<script>var x = "<script id=__NEXT_DATA__>";</script><meta property="p" content="x"><meta name=amp content="a&amp;b">
		<script type="application/json" id="__NEXT_DATA__">{"buildId":"b1","props":{"n":12345678901234567890,"ok":true,"list":["x",{"a/b~c":"y"}],
		"no":null}}</script>`
	for _, c := range []struct{ source, expression, pattern, want string }{
		{Meta, "csrf-token", "", "a/b+c=~"},
		{Meta, "CSRF-Token", "", "a/b+c=~"},
		{Meta, "amp", "", "error"}, // has characters outside the default pattern
		{Meta, "amp", "^a&b$", "a&b"},
		{Meta, "p", "", "error"},
		{FrameworkData, "/buildId", "", "b1"},
		{FrameworkData, "/props/n", "", "12345678901234567890"},
		{FrameworkData, "/props/ok", "", "true"},
		{FrameworkData, "/props/list/0", "", "x"},
		{FrameworkData, "/props/list/1/a~1b~0c", "", "y"},
		{FrameworkData, "/props/list/01", "", "error"},
		{FrameworkData, "/props/list/2", "", "error"},
		{FrameworkData, "/props/no", "", "error"},
		{FrameworkData, "/props", "", "error"},
		{FrameworkData, "/buildId/x", "", "error"},
		{Regex, `"buildId":"([^"]+)"`, "", "b1"},
		{Regex, `(?i)NAME="(csrf)-(token)"`, "", "csrf"},
		{Regex, `nothing(x)`, "", "error"},
		{Regex, `doctype( html)`, "", "error"},
	} {
		compiled, faults := Compile(rules(model.TokenRule{Name: "T", Source: c.source,
			Expression: c.expression, ValidatePattern: c.pattern}))
		if len(faults) > 0 {
			t.Errorf("%s %s: %v", c.source, c.expression, faults)
			continue
		}
		values, err := compiled.Find(t.Context(), []byte(page))
		if got := values["T"]; got != c.want && !(c.want == "error" && err != nil) {
			t.Errorf("%s %s: %q, %v; want %q", c.source, c.expression, got, err, c.want)
		}
	}
}

func TestCompile(t *testing.T) {
	fine := model.TokenRule{Name: "A_1", Source: Meta, Expression: "a"}
	ttl := func(minutes int) *model.Prelaunch {
		p := rules(fine)
		p.TTLMinutes = &minutes
		return p
	}
	change := func(do func(*model.TokenRule)) *model.Prelaunch {
		rule := fine
		do(&rule)
		return rules(fine, rule)
	}
	for name, c := range map[string]struct {
		p      *model.Prelaunch
		fields string
	}{
		"fine":       {rules(fine), ""},
		"longest":    {ttl(43_200), ""},
		"shortest":   {ttl(1), ""},
		"no time":    {ttl(0), "ttlMinutes"},
		"too long":   {ttl(43_201), "ttlMinutes"},
		"no address": {&model.Prelaunch{Tokens: []model.TokenRule{fine}}, "discoveryUrl"},
		"a placeholder": {&model.Prelaunch{DiscoveryURL: "https://shop.test/{{A}}",
			Tokens: []model.TokenRule{fine}}, "discoveryUrl"},
		"an escaped one": {&model.Prelaunch{DiscoveryURL: "https://shop.test/%7b{A}%7D",
			Tokens: []model.TokenRule{fine}}, "discoveryUrl"},
		"a name twice":  {rules(fine, fine), "tokens[1].name"},
		"other letters": {change(func(r *model.TokenRule) { r.Name = "a_1" }), ""},
		"a bad name": {change(func(r *model.TokenRule) { r.Name = "a-b" }),
			"tokens[1].name"},
		"a name with a tail": {change(func(r *model.TokenRule) { r.Name = "a\n" }),
			"tokens[1].name"},
		"no name": {change(func(r *model.TokenRule) { r.Name = "" }), "tokens[1].name"},
		"a bad source": {change(func(r *model.TokenRule) {
			r.Name, r.Source = "B",
				"COOKIE"
		}), "tokens[1].source"},
		"no expression": {change(func(r *model.TokenRule) { r.Name, r.Expression = "B", "" }),
			"tokens[1].expression"},
		"no pointer": {change(func(r *model.TokenRule) {
			r.Name, r.Source = "B",
				FrameworkData
		}), "tokens[1].expression"},
		"no RE2": {change(func(r *model.TokenRule) {
			r.Name, r.Source,
				r.Expression = "B", Regex, "(?=a)(b)"
		}), "tokens[1].expression"},
		"no group": {change(func(r *model.TokenRule) {
			r.Name, r.Source,
				r.Expression = "B", Regex, "a"
		}), "tokens[1].expression"},
		"a bad pattern": {change(func(r *model.TokenRule) {
			r.Name, r.ValidatePattern = "B",
				"("
		}), "tokens[1].validatePattern"},
		"the default": {change(func(r *model.TokenRule) {
			r.Name, r.ValidatePattern = "B",
				DefaultPattern
		}), ""},
		"too many": {rules(make([]model.TokenRule, maxTokens+1)...), "tokens"},
	} {
		_, faults := Compile(c.p)
		var fields []string
		for _, f := range faults {
			fields = append(fields, strings.TrimPrefix(f.Field, "sourceConfig.prelaunch."))
			if f.Code != fault.SchemaValidation {
				t.Errorf("%s: %v", name, f)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: faults at %q, want %q", name, got, c.fields)
		}
	}
	for _, off := range []*model.Prelaunch{nil, {DiscoveryURL: "https://shop.test/"}} {
		if compiled, faults := Compile(off); compiled != nil || faults != nil || compiled.Has("A") {
			t.Errorf("%+v: %+v, %v", off, compiled, faults)
		}
	}
	a, _ := Compile(rules(fine))
	b, _ := Compile(ttl(5))
	if a.Hash == b.Hash || a.TTL != 360*time.Minute || b.TTL != 5*time.Minute || !a.Has("A_1") ||
		a.Has("a_1") {
		t.Errorf("compiled are %+v and %+v", a, b)
	}
}

func TestBuildOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://shop.test/_next/data/abc/en/p.json?x=1": "abc https://shop.test/ true",
		"https://shop.test:8443/_next/data/a-b_c~1/p":    "a-b_c~1 https://shop.test:8443/ true",
		"https://shop.test/base/_next/data/abc/p.json":   "abc https://shop.test/ true",
		"https://shop.test/_next/data/abc":               "  false",
		"https://shop.test/_next/data//p.json":           "  false",
		"https://shop.test/?u=/_next/data/abc/p.json":    "  false",
		"https://shop.test/_next/static/abc/p.js":        "  false",
	} {
		id, root, ok := BuildOf(address)
		if got := fmt.Sprint(id, " ", root, " ", ok); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func TestWithBuild(t *testing.T) {
	r, err := curl.Parse("curl 'https://shop.test/base/_next/data/one/one.json?dpl=1&one=dpl' " +
		"-H 'X-Deployment-ID: 1'")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		values map[string]string
		want   string
	}{
		{nil, "https://shop.test/base/_next/data/one/one.json?dpl=1&one=dpl 1"},
		{map[string]string{BuildID: "two"},
			"https://shop.test/base/_next/data/two/one.json?dpl=1&one=dpl 1"},
		{map[string]string{BuildID: "two", DeploymentID: "2"},
			"https://shop.test/base/_next/data/two/one.json?dpl=2&one=dpl 2"},
	} {
		made, address := WithBuild(r, r.URL, c.values)
		if got := address + " " + made.Header[0].Value; got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
	if r.Header[0].Value != "1" {
		t.Error("the request itself has changed")
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`<script id=__NEXT_DATA__>{"buildId":"x"}</script><meta name=a content=b>`))
	f.Add([]byte("<meta name=a"))
	compiled, faults := Compile(rules(model.TokenRule{Name: "A", Source: Meta, Expression: "a",
		ValidatePattern: "."}))
	if len(faults) > 0 {
		f.Fatal(faults)
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		if values, err := compiled.Find(t.Context(), page); err == nil &&
			len(values["A"]) > maxValue {
			t.Errorf("a value of %d bytes", len(values["A"]))
		}
		if values, err := FindBuild(page); err == nil && !buildID.MatchString(values[BuildID]) {
			t.Errorf("build %q", values[BuildID])
		}
	})
}

// TestPatternsAreBounded: patterns that would compile to very much are refused, alone and together.
// Their cost on a page is limited.
func TestPatternsAreBounded(t *testing.T) {
	taken, large := strings.Repeat("(a{0,400})", 3), strings.Repeat("(a{0,999})", 20)
	tokens := func(n int, expression, valid string) *model.Prelaunch {
		p := &model.Prelaunch{DiscoveryURL: "https://a.example/"}
		for i := range n {
			p.Tokens = append(p.Tokens,
				model.TokenRule{Name: fmt.Sprint("T", i), Source: Regex, Expression: expression,
					ValidatePattern: valid})
		}
		return p
	}
	for field, p := range map[string]*model.Prelaunch{
		"sourceConfig.prelaunch.tokens[0].expression":      tokens(1, large, ""),
		"sourceConfig.prelaunch.tokens[0].validatePattern": tokens(1, taken, large),
		"sourceConfig.prelaunch.tokens[20].expression":     tokens(30, taken, ""),
	} {
		if _, faults := Compile(p); len(faults) == 0 || faults[0].Field != field ||
			faults[0].Code != fault.SchemaValidation {
			t.Errorf("%v, want a fault of %s", faults, field)
		}
	}
	compiled, faults := Compile(tokens(1, taken+"z", ""))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if _, err := compiled.Find(t.Context(), bytes.Repeat([]byte("b"), 1_000_000)); !errors.Is(err,
		pattern.ErrExhausted) {
		t.Errorf("on a long page: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compiled.Find(ctx, bytes.Repeat([]byte("b"), 1_000_000)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("for somebody who has gone: %v", err)
	}
}

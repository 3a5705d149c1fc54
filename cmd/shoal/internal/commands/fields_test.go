package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/model"
)

func TestParseFields(t *testing.T) {
	for text, want := range map[string]model.Field{
		"title=h1":             {Name: "title", Selector: "h1", Kind: model.Text},
		" price = .price > b ": {Name: "price", Selector: ".price > b", Kind: model.Text},
		"link=a.more@href": {Name: "link", Selector: "a.more", Kind: model.Attr,
			Attr: "href"},
		"id=div @data-id": {Name: "id", Selector: "div", Kind: model.Attr,
			Attr: "data-id"},
		"mail=a[href*='@x.example']": {Name: "mail", Selector: "a[href*='@x.example']",
			Kind: model.Text},
		"mail=a[href*='@x']@href": {Name: "mail", Selector: "a[href*='@x']", Kind: model.Attr,
			Attr: "href"},
		"eq=a[rel=next]@xlink:href": {Name: "eq", Selector: "a[rel=next]", Kind: model.Attr,
			Attr: "xlink:href"},
		"sale=.badge-sale?": {Name: "sale", Selector: ".badge-sale", Kind: model.Exists},
		"either=h1, h2":     {Name: "either", Selector: "h1, h2", Kind: model.Text},
		"linked=a[href='/x?y=1@z']?": {Name: "linked", Selector: "a[href='/x?y=1@z']",
			Kind: model.Exists},
		"query=a[href='/x?y=1']@href": {Name: "query", Selector: "a[href='/x?y=1']",
			Kind: model.Attr, Attr: "href"},
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
		"title": "want NAME=SELECTOR", "=h1": "want NAME=SELECTOR", "a=": "want NAME=SELECTOR",
		"a=?": "empty", "a=@href": "empty",
		"a=b@c?": "a=b[c]?",
	} {
		if _, err := parseFields([]string{text}); err == nil ||
			!strings.Contains(err.Error(), want) {
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
		if field.Name == "" || field.Selector == "" ||
			(field.Kind == model.Attr) != (field.Attr != "") {
			t.Errorf("%q became %+v", text, field)
		}
	})
}

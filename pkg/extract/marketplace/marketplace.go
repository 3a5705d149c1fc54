// Package marketplace owns MARKETPLACE: pages of online shops, whatever their system, in one form of row. A plugin reads
// one kind of page; each is a folder here with its tag and tests, and has a row in the price table. What is known of the
// systems is in internal/shop, the form of the rows at shop.Product.
package marketplace

import (
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/extract/marketplace/pdp"
	"shoal.dev/shoal/pkg/extract/marketplace/search"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// plugin reads one kind of page. It is safe for concurrent use.
type plugin struct {
	tag  string
	read func(*shop.Reader, *shop.Page) []shop.Product
}

var plugins = []plugin{{pdp.Tag, pdp.Read}, {search.Tag, search.Read}}

// Tags are the tags of the plugins, the default first.
func Tags() []string {
	tags := make([]string, len(plugins))
	for i := range plugins {
		tags[i] = plugins[i].tag
	}
	return tags
}

// Compile picks the plugin that the recipe's endpoint names, the one for product pages unless told.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	var faults fault.List
	if len(r.Fields) > 0 {
		faults = append(faults, fault.Invalid(fault.SchemaValidation, "itemsConfig", "a plugin has fields of its own; leave it out"))
	}
	tag := r.Endpoint
	if tag == "" {
		tag = plugins[0].tag
	}
	for _, p := range plugins {
		if p.tag == tag && len(faults) == 0 {
			return maker(p), nil
		}
		if p.tag == tag {
			return rows.Maker{}, faults
		}
	}
	return rows.Maker{}, append(faults, fault.Invalid(fault.SchemaValidation, "config.endpointTag", "no plugin has the tag %.100q", tag))
}

func maker(p plugin) rows.Maker {
	reader := shop.NewReader()
	return rows.Maker{Read: func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		opened, err := shop.Open(pages[0])
		if err != nil {
			return rows.More{}, err
		}
		for _, product := range p.read(reader, opened) {
			if err := out.Whole(product.Append(nil)); err != nil {
				return rows.More{}, err
			}
		}
		return rows.More{}, nil
	}}
}

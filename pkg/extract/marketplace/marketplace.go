// Package marketplace owns MARKETPLACE: pages of online shops, whatever their system, in one form
// of row. A plugin reads one kind of page. Each plugin is a folder here with its tag, its row of
// the price table and its tests, and a line in plugins. Knowledge of the shop systems is in
// internal/shop; shop.Product defines the rows.
package marketplace

import (
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/extract/marketplace/pdp"
	"shoal.dev/shoal/pkg/extract/marketplace/search"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// plugins lists the plugins, the default first.
func plugins() []shop.Plugin { return []shop.Plugin{pdp.Plugin(), search.Plugin()} }

// Tags returns the tags of the plugins, the default first.
func Tags() []string {
	var tags []string
	for _, p := range plugins() {
		tags = append(tags, p.Tag)
	}
	return tags
}

// Compile picks the plugin that the recipe's endpoint names; the default reads product pages.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	var faults fault.List
	if len(r.Fields) > 0 {
		faults = append(faults,
			fault.Invalid(fault.SchemaValidation, "itemsConfig",
				"a plugin has fields of its own; leave it out"))
	}
	for i, p := range plugins() {
		if p.Tag == r.Endpoint || r.Endpoint == "" && i == 0 {
			if len(faults) > 0 {
				return rows.Maker{}, faults
			}
			return p.Maker(), nil
		}
	}
	return rows.Maker{}, append(faults,
		fault.Invalid(fault.SchemaValidation, "config.endpointTag", "no plugin has the tag %.100q",
			r.Endpoint))
}

package extract

import (
	"shoal.dev/shoal/pkg/extract/aiconf"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/ldjson"
	"shoal.dev/shoal/pkg/extract/multiple"
	"shoal.dev/shoal/pkg/extract/single"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// scraperType is one way to make rows of a page. compile checks the part of the recipe that the type uses and reports
// every bad member.
type scraperType struct {
	name    model.ScraperType
	compile func(model.Recipe) (rows.Maker, fault.List)
}

// catalog lists the scraper types that can run. A new one is a folder and a line.
var catalog = []scraperType{
	{model.SingleProduct, single.Compile},
	{model.MultipleProducts, multiple.Compile},
	{model.ApplicationLDJSON, ldjson.Compile},
	{model.AIConf, aiconf.Compile},
}

func lookup(name model.ScraperType) *scraperType {
	for i := range catalog {
		if catalog[i].name == name {
			return &catalog[i]
		}
	}
	return nil
}

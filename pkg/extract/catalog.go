package extract

import (
	"shoal.dev/shoal/pkg/extract/detect"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace"
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
	{model.Marketplace, marketplace.Compile},
}

// Tags are those of the plugins that read the pages of list runs.
func Tags() []string { return marketplace.Tags() }

// detection is none of the catalog: it runs the others.
func detection(r model.Recipe) (rows.Maker, fault.List) {
	return detect.Compile(r, propose, marketplace.Tags())
}

// propose makes the rows of a page by a recipe, without anything that would have to be asked for.
func propose(r model.Recipe, p Page) ([][]byte, error) {
	e, err := Compile(r)
	if err != nil {
		return nil, err
	}
	result, err := e.Extract(p)
	if err == nil && result.Ask != nil {
		result, err = e.Extract(p, Page{Code: fault.PageTimeout})
	}
	return result.Rows, err
}

func lookup(name model.ScraperType) *scraperType {
	if name == model.Detection {
		return &scraperType{name, detection}
	}
	for i := range catalog {
		if catalog[i].name == name {
			return &catalog[i]
		}
	}
	return nil
}

package extract

import (
	"shoal.dev/shoal/pkg/extract/detect"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Proposal is a row of a recipe of the type model.Detection.
type Proposal = detect.Candidate

// Schema is an element of a Proposal's schema.
type Schema = detect.Schema

// What people pick fields on: the first row of a recipe of the type model.Viewing, how it is shown,
// and what came of a pick.
type (
	View      = detect.View
	Showing   = detect.Showing
	ShownNode = detect.Node
	Choice    = detect.Choice
)

// Show makes a page ready to be shown and picked from. It takes what a page may take that previews
// read. Nothing of it is a script, a style or an address.
func Show(v *View) (*Showing, error) { return detect.Show(v) }

// viewing is none of the catalog, either.
func viewing(r model.Recipe) (rows.Maker, fault.List) {
	return detect.CompileView(r, propose, marketplace.Tags())
}

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

package extract

import (
	"shoal.dev/shoal/pkg/extract/detect"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Proposal is a row that a recipe of the type model.Detection gives.
type Proposal = detect.Candidate

// Schema is an element of a Proposal's schema.
type Schema = detect.Schema

// These types serve picking fields on a page. View is the first row of a model.Viewing recipe,
// Showing is how it is displayed, and Choice is the result of a pick.
type (
	View      = detect.View
	Showing   = detect.Showing
	ShownNode = detect.Node
	Choice    = detect.Choice
)

// Show prepares a page for display and picking. It costs no more than a preview may spend on a
// page. The result contains no script, style or address.
func Show(v *View) (*Showing, error) { return detect.Show(v) }

// viewing, like detection, is not in the catalog.
func viewing(r model.Recipe) (rows.Maker, fault.List) {
	return detect.CompileView(r, propose, marketplace.Tags())
}

// detection is not in the catalog because it runs the types that are.
func detection(r model.Recipe) (rows.Maker, fault.List) {
	return detect.Compile(r, propose, marketplace.Tags())
}

// propose returns a recipe's rows of a page, without any further fetch or model call.
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

package previews

import (
	"context"
	"errors"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rules"
	"shoal.dev/shoal/pkg/turns"
)

// PagePickInput is the body of a pick: the recipe so far, and the element to add.
type PagePickInput struct {
	URL              string                  `json:"url" max:"8192" required:"true" min:"1" doc:"Address as in the request for the page"`
	Type             model.ScraperType       `json:"type" required:"true" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS"`
	ItemsConfig      []model.Field           `json:"itemsConfig" max:"500" doc:"The fields so far; the first one makes the rows"`
	PostProcessRules []model.PostProcessRule `json:"postProcessRules" max:"100" doc:"Applied to the rows, in this order"`
	Element          *int                    `json:"element" min:"0" max:"100000" doc:"Number of the element to make a field of"`
}

// PagePick is the result of a recipe for a page.
type PagePick struct {
	ItemsConfig []model.Field `json:"itemsConfig" doc:"The fields, with the picked one last"`
	Choices     []PageChoice  `json:"choices" doc:"What the field could read from the picked element, the chosen one first"`
	Matches     [][]int       `json:"matches" doc:"For each field, the numbers of the elements that it selects, at most 1,000 each. Empty for a selector that is not CSS."`
	RowCount    int           `json:"rowCount" doc:"Rows of the page"`
	Rows        []api.Row     `json:"rows" doc:"The first rows, at most 20"`
}

// PageChoice is a part of an element that could become a field.
type PageChoice struct {
	Kind  model.FieldKind `json:"kind"`
	Attr  string          `json:"attr,omitempty"`
	Value string          `json:"value" scraped:"-" doc:"Value in the picked element; only the beginning if it is long"`
}

type pickRequest struct {
	Body PagePickInput `body:"json" limit:"262144"`
}

// pick is POST /api/scraper-simple/page/pick.
func (r Resource) pick() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_pick_on_page",
		Routes: operation.Routes("POST /api/scraper-simple/page/pick"), Group: group,
		Summary: "Makes a field from an element of a page, and rows from all fields",
		Description: "The page comes from POST /api/scraper-simple/page, and is kept for 10 " +
			"minutes: a pick fetches nothing and costs nothing. The first field of " +
			"MULTIPLE_PRODUCTS matches all elements in positions like the picked one. Each is " +
			"a row, and later fields are found within each row. Rows are made from the kept " +
			"page. If its end was left out, a run has more rows.",
		Access: auth.Read, Rate: limits.General, Invalid: fault.SchemaValidation,
		Errors: []fault.Code{fault.NotFound, fault.SchemaValidation, fault.InvalidRequest,
			fault.SourceUnreachable},
	}, func(ctx context.Context, from *operation.Caller, in *pickRequest) (PagePick, error) {
		ctx, leave := from.WhileThere(ctx, r.Clock)
		defer leave()
		b := &in.Body
		var faults fault.List
		if len(b.ItemsConfig) > 0 {
			faults = extract.Validate(model.Recipe{Type: b.Type, Fields: b.ItemsConfig})
		}
		faults = append(faults, rules.Check(ctx, b.PostProcessRules, r.ExchangeRates)...)
		if len(faults) > 0 {
			return PagePick{}, faults
		}
		kept, err := r.Trials.Kept(ctx, from.Customer, b.URL)
		if err != nil {
			return PagePick{}, err
		}
		var place turns.Place
		if !r.Places.Enter(ctx, from.Customer, &place) {
			return PagePick{}, ctx.Err()
		}
		defer place.Leave()
		return withShown(r, &kept.View, func(showing *extract.Showing) (PagePick, error) {
			return r.pickOn(&place, showing, kept.View.URL, b)
		})
	})
}

// pickOn picks on the page at url.
func (r Resource) pickOn(ctx context.Context, showing *extract.Showing, url string,
	in *PagePickInput) (PagePick, error) {
	answer := PagePick{ItemsConfig: in.ItemsConfig, Choices: []PageChoice{}, Rows: []api.Row{}}
	if answer.ItemsConfig == nil {
		answer.ItemsConfig = []model.Field{}
	}
	if in.Element != nil {
		field, choices, err := showing.Pick(ctx, in.Type, in.ItemsConfig, *in.Element)
		if err != nil {
			return PagePick{}, tooMuch(ctx, err)
		}
		answer.ItemsConfig = append(answer.ItemsConfig, field)
		for _, c := range choices {
			answer.Choices = append(answer.Choices,
				PageChoice{Kind: c.Kind, Attr: c.Attr, Value: c.Value})
		}
	}
	var err error
	if answer.Matches, err = showing.Matches(ctx, in.Type, answer.ItemsConfig); err != nil {
		return PagePick{}, tooMuch(ctx, err)
	}
	if len(answer.ItemsConfig) == 0 {
		return answer, nil
	}
	err = r.rowsOf(ctx, &answer, in, extract.Page{URL: url, ContentType: "text/html",
		Body: showing.Markup})
	return answer, err
}

// Bounds of the rows that a pick answers: the first ones.
const (
	mostPickRows  = 20
	mostPickBytes = 4 << 20
)

// rowsOf makes the rows of a page with the picked fields.
func (r Resource) rowsOf(ctx context.Context, answer *PagePick, in *PagePickInput,
	page extract.Page) error {
	maker, err := extract.Compile(model.Recipe{Type: in.Type, Fields: answer.ItemsConfig})
	if err != nil {
		return err
	}
	applied, faults := rules.Compile(in.PostProcessRules)
	if len(faults) > 0 {
		return faults
	}
	made, err := maker.ExtractContext(ctx, page)
	if err != nil {
		return tooMuch(ctx, err)
	}
	answer.RowCount = len(made.Rows)
	rows := made.Rows[:min(len(made.Rows), mostPickRows)]
	if rows, err = applied.ApplyAll(ctx, rows, applied.DayOf(ctx, r.ExchangeRates, r.Clock.Now()),
		extract.MaxPageBytes); err != nil {
		return tooMuch(ctx, err)
	}
	size := 0
	for _, row := range rows {
		if size += len(row); size > mostPickBytes {
			break
		}
		answer.Rows = append(answer.Rows, api.Row(row))
	}
	return nil
}

// tooMuch blames the recipe, not the page: the caller can fix it. A refused element is to blame
// already.
func tooMuch(ctx context.Context, err error) error {
	if ctx.Err() != nil || fault.CodeOf(err) == fault.InvalidRequest {
		return err
	}
	code := fault.CodeOf(err)
	if errors.Is(err, pattern.ErrExhausted) {
		code = fault.PageTooCostly
	}
	return fault.Invalid(fault.SchemaValidation, "itemsConfig", "%s", fault.Lookup(code).Title)
}

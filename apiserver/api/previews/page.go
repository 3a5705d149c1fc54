package previews

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/turns"
)

// PagePreviewInput is the body of a page preview.
type PagePreviewInput struct {
	URL string `json:"url" max:"8192" required:"true" min:"1"`
}

// PagePreview is a page on which fields can be picked.
type PagePreview struct {
	URL           string            `json:"url" doc:"Address of the page after redirects"`
	Nodes         []PageNode        `json:"nodes" doc:"What the page shows, in document order. A node's number is its index here."`
	Cut           bool              `json:"cut" doc:"True if the end of a long page was left out"`
	Pagination    *model.Pagination `json:"pagination" doc:"How its list continues, as a scraper's pagination; null: it seems not to"`
	Candidates    []PageCandidate   `json:"candidates" doc:"Recipes that make rows from the page, best first"`
	Tier          string            `json:"tier" doc:"The tier that fetched the page: plain, render, super or render+super"`
	ChargedMicros int64             `json:"chargedMicros" doc:"What the page cost, in micros, millionths of a euro"`
	ExpiresAt     api.Time          `json:"expiresAt" doc:"The page is kept until then"`
}

// PageNode is an element or a text of the shown page, without attributes.
type PageNode struct {
	In   int    `json:"in" doc:"Number of the parent element; -1: none"`
	Name string `json:"name,omitempty" doc:"For an element: its HTML name, only of elements that run, load and send nothing"`
	Text string `json:"text,omitempty" scraped:"url" doc:"For a text: the text; for an img: its alternative text"`
}

// PageCandidate is a recipe that could be saved as a scraper, and its rows for the page.
type PageCandidate struct {
	Type         model.ScraperType    `json:"type"`
	SourceConfig model.SourceConfig   `json:"sourceConfig"`
	ItemsConfig  []model.Field        `json:"itemsConfig"`
	Schema       *model.SchemaRef     `json:"schema"`
	Config       *model.ScraperConfig `json:"config"`
	SampleData   []api.Row            `json:"sampleData" doc:"The first rows, at most 20"`
}

type pageRequest struct {
	UseCache  bool             `query:"useCache" default:"true" doc:"Return the page fetched in the last 10 minutes, if any; costs nothing"`
	MaxCharge *int64           `query:"maxChargeMicros" min:"0" max:"9007199254740991" doc:"The call is refused if it could cost more than this, in micros, millionths of a euro"`
	Body      PagePreviewInput `body:"json" limit:"65536"`
}

const pageID = "svc_preview_page"

// page is POST /api/scraper-simple/page.
func (r Resource) page() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: pageID, Routes: operation.Routes("POST /api/scraper-simple/page"),
		Group:   group,
		Summary: "Shows a page to pick fields on",
		Description: "The page comes as elements and texts without attributes, so that nothing " +
			"in it can run, load or send. Scripts, styles and images are left out, and so is " +
			"everything beyond 480 KiB or 10,000 elements. The page is fetched and charged " +
			"like any other, and is kept for 10 minutes. Until then, picks on it and calls for " +
			"the same address are free, unless the cache loses it. Nothing is saved.",
		Access: auth.Read, Rate: limits.Preview, Timeout: trial.Timeout,
		Errors: trial.Errors(),
	}, func(ctx context.Context, from *operation.Caller, in *pageRequest) (PagePreview, error) {
		by := api.Trying(from, pageID)
		found, err := r.Trials.LookAt(ctx, by, in.Body.URL, in.UseCache, in.MaxCharge)
		api.Tried(from, by)
		if err != nil {
			return PagePreview{}, err
		}
		showing, err := r.show(ctx, from.Customer, found)
		if err != nil {
			return PagePreview{}, err
		}
		answer := PagePreview{URL: found.View.URL, Cut: found.View.Cut,
			Nodes: []PageNode{}, Pagination: found.View.Pagination, Tier: found.Tier,
			Candidates: []PageCandidate{}, ChargedMicros: found.Charged,
			ExpiresAt: api.Time(found.Until.UnixMilli())}
		for _, n := range showing.Nodes {
			answer.Nodes = append(answer.Nodes, PageNode{In: n.In, Name: n.Name, Text: n.Text})
		}
		for i := range found.Candidates {
			answer.Candidates = append(answer.Candidates,
				candidateOf(in.Body.URL, &found.Candidates[i]))
		}
		return answer, nil
	})
}

func candidateOf(url string, found *extract.Proposal) PageCandidate {
	s := &found.Scraper
	c := PageCandidate{Type: s.Type, SourceConfig: model.SourceConfig{URL: url,
		Pagination:        s.SourceConfig.Pagination,
		TryWithHiddenData: s.SourceConfig.TryWithHiddenData},
		ItemsConfig: s.ItemsConfig, Schema: s.Schema, Config: s.Config,
		SampleData: api.Rows(found.SampleData)}
	if c.ItemsConfig == nil {
		c.ItemsConfig = []model.Field{}
	}
	if c.Config == nil {
		c.Config = &model.ScraperConfig{}
	}
	return c
}

// show parses a customer's page. It waits for a free place first.
func (r Resource) show(ctx context.Context, customer string,
	page *trial.Page) (*extract.Showing, error) {
	var place turns.Place
	if !r.Places.Enter(ctx, customer, &place) {
		return nil, ctx.Err()
	}
	defer place.Leave()
	return withShown(r, &page.View, func(s *extract.Showing) (*extract.Showing, error) {
		return s, nil
	})
}

// withShown parses a kept page and does something with it. A page that makes its reader panic
// cannot be parsed either.
func withShown[T any](r Resource, v *extract.View, do func(*extract.Showing) (T, error)) (made T,
	err error) {
	markup := func() []byte {
		text, _ := v.Markup() // of what cannot be unpacked, nothing is recorded
		return text
	}
	panicked := r.Reader.Run(reading.Page{URL: v.URL, ContentType: "text/html", Record: markup},
		func() {
			var showing *extract.Showing
			if showing, err = extract.Show(v); err != nil {
				err = unreadable(err)
				return
			}
			made, err = do(showing)
		})
	if panicked != nil {
		err = unreadable(panicked)
	}
	return made, err
}

func unreadable(err error) error {
	return fault.New(fault.SourceUnreachable, "%s", fault.Lookup(fault.CodeOf(err)).Title)
}

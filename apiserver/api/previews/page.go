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
	"shoal.dev/shoal/pkg/turns"
)

// PagePreviewInput is the body of a page preview.
type PagePreviewInput struct {
	URL string `json:"url" max:"8192" required:"true" min:"1"`
}

// PagePreview is a page on which fields can be picked.
type PagePreview struct {
	URL           string            `json:"url" doc:"Where the page is, behind redirects"`
	Nodes         []PageNode        `json:"nodes" doc:"What the page shows, in its order. The number of a node is its place here."`
	Cut           bool              `json:"cut" doc:"The end of a long page is left out"`
	Pagination    *model.Pagination `json:"pagination" doc:"How its list goes on, as a scraper has it; null: it seems not to"`
	Candidates    []PageCandidate   `json:"candidates" doc:"Recipes that make rows of the page, the best first"`
	Tier          string            `json:"tier" doc:"The tier that brought the page: plain, render, super or render+super"`
	ChargedMicros int64             `json:"chargedMicros" doc:"What the page cost, in micros, millionths of a euro"`
	ExpiresAt     api.Time          `json:"expiresAt" doc:"Until then it is kept"`
}

// PageNode is an element or a text of the shown page, without attributes.
type PageNode struct {
	In   int    `json:"in" doc:"The number of the element around it; -1: none"`
	Name string `json:"name,omitempty" doc:"Of an element: a name of HTML that runs, loads and sends nothing"`
	Text string `json:"text,omitempty" scraped:"url" doc:"Of a text; of an img what stands for it"`
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
	UseCache  bool             `query:"useCache" default:"true" doc:"Answer the page that was fetched within 10 minutes, which costs nothing"`
	MaxCharge *int64           `query:"maxChargeMicros" min:"0" max:"9007199254740991" doc:"The call is refused rather than cost more, in micros, millionths of a euro"`
	Body      PagePreviewInput `body:"json" limit:"65536"`
}

const pageID = "svc_preview_page"

// page is POST /api/scraper-simple/page.
func (r Resource) page() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: pageID, Routes: operation.Routes("POST /api/scraper-simple/page"),
		Group:   group,
		Summary: "Shows a page to pick fields on",
		Description: "The page comes as elements and texts without attributes, so that it can " +
			"be shown without anything of it running, loading or sending. Scripts, styles and " +
			"images are left out, and so is what is beyond 480 KiB or 10,000 elements. The page is " +
			"fetched and paid like any other, and is kept for 10 minutes. Picks on it, and " +
			"calls for the same address, are free until then, as far as the cache does not " +
			"lose it. Nothing is saved.",
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
	showing, err := extract.Show(&page.View)
	if err != nil {
		return nil, fault.New(fault.SourceUnreachable, "%s", fault.Lookup(fault.CodeOf(err)).Title)
	}
	return showing, nil
}

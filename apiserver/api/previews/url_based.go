package previews

import (
	"context"
	"encoding/json"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// URLPreviewInput is the body of a preview of an address.
type URLPreviewInput struct {
	ID          ids.ID        `json:"id" doc:"Id of the scraper that a proposal will replace"`
	Name        string        `json:"name" form:"filled-line" required:"true" min:"1" max:"200"`
	GroupID     ids.ID        `json:"groupId" required:"true"`
	URL         string        `json:"url" max:"8192" required:"true" min:"1"`
	ItemsConfig []model.Field `json:"itemsConfig" max:"500" doc:"Fields to be tried first"`
}

type urlBasedRequest struct {
	TryWithHiddenData bool            `query:"tryWithHiddenData" default:"false" doc:"Read microdata and RDFa if JSON-LD states nothing"`
	UseCache          bool            `query:"useCache" default:"false" doc:"Return the same preview from the last hour, if there is one"`
	MaxCharge         *int64          `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused if it could cost more than this, in micros, millionths of a euro"`
	Body              URLPreviewInput `body:"json" limit:"262144"`
}

const urlBasedID = "svc_preview_scraper_from_url"

const description = "Every strategy that fits the page is tried. Those that make rows are " +
	"proposed, best first, each with its first rows. A run would give the same rows. If " +
	"nothing was found, the array is empty and the header Shoal-Reason says why. The page is " +
	"fetched and charged like any other. If nothing was found, it costs nothing. Nothing is " +
	"saved. The call waits up to 55 s; disconnecting ends it."

// fromURL is POST /api/scraper-simple/url-based.
func (r Resource) fromURL() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: urlBasedID, Routes: operation.Routes("POST /api/scraper-simple/url-based"),
		Group:   group,
		Summary: "Proposes scrapers for a page", Description: description,
		Access: auth.Read, Agents: operation.Spends, Rate: limits.Preview, Timeout: trial.Timeout,
		Errors: append([]fault.Code{fault.NotFound}, trial.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *urlBasedRequest) ([]ScraperProposal,
		error) {
		b := &in.Body
		key, err := json.Marshal([]any{b.URL, in.TryWithHiddenData, b.ItemsConfig})
		if err != nil {
			return nil, err
		}
		return r.propose(ctx, from, urlBasedID, &trial.Detection{
			Name: b.Name, Group: b.GroupID, Scraper: b.ID, Key: string(key), UseCache: in.UseCache,
			Trial: launch.Trial{Source: model.SourcePreviewURL, URL: b.URL, Field: "url",
				Group: b.GroupID, MaxCharge: in.MaxCharge,
				Recipe: model.Recipe{Type: model.Detection, Fields: b.ItemsConfig,
					HiddenData: in.TryWithHiddenData}}}, model.SourceConfig{URL: b.URL})
	})
}

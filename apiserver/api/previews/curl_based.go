package previews

import (
	"context"
	"errors"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// CurlPreviewInput is the body of a preview of a curl command.
type CurlPreviewInput struct {
	ID      ids.ID `json:"id" doc:"Id of the scraper that a proposal will replace"`
	Name    string `json:"name" form:"filled-line" required:"true" min:"1" max:"200"`
	GroupID ids.ID `json:"groupId" required:"true"`
	Curl    string `json:"curl" max:"131072" required:"true" min:"1" doc:"A curl command as browsers copy it, for bash or Windows cmd"`
}

type curlBasedRequest struct {
	MaxCharge *int64           `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused if it could cost more than this, in micros, millionths of a euro"`
	Body      CurlPreviewInput `body:"json" limit:"262144"`
}

const curlBasedID = "svc_preview_scraper_from_curl"

// fromCurl is POST /api/scraper-simple/curl-based.
func (r Resource) fromCurl() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: curlBasedID, Routes: operation.Routes("POST /api/scraper-simple/curl-based"),
		Group:       group,
		Summary:     "Proposes scrapers for the answer to a request given as a curl command",
		Description: description,
		Access:      auth.Read, Agents: operation.Spends,
		Feature: plans.API, Rate: limits.Preview, Timeout: trial.Timeout,
		Errors: append([]fault.Code{fault.NotFound}, trial.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *curlBasedRequest) ([]ScraperProposal,
		error) {
		b := &in.Body
		request, err := curl.Parse(b.Curl)
		if err != nil {
			detail := "is no curl command"
			if coded := (*fault.Error)(nil); errors.As(err, &coded) {
				detail = coded.Detail
			}
			return nil, fault.Invalid(fault.SchemaValidation, "curl", "%s", detail)
		}
		if names := request.Placeholders(); len(names) > 0 {
			return nil, fault.Invalid(fault.SchemaValidation, "curl",
				"a preview has no value for the placeholder {{%s}}", names[0])
		}
		from.Origin = request.URL
		return r.propose(ctx, from, curlBasedID, &trial.Detection{
			Name: b.Name, Group: b.GroupID, Scraper: b.ID,
			Trial: launch.Trial{Source: model.SourcePreviewCurl, URL: request.URL, Field: "curl",
				Group: b.GroupID, MaxCharge: in.MaxCharge,
				Recipe: model.Recipe{Type: model.Detection, Curl: b.Curl}}},
			model.SourceConfig{Curl: b.Curl})
	})
}

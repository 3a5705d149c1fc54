package previews

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// CurlBased is the body of a preview of a request.
type CurlBased struct {
	ID      ids.ID `json:"id" doc:"Of a scraper that a proposal is to replace"`
	Name    string `json:"name" required:"true" min:"1" max:"200"`
	GroupID ids.ID `json:"groupId" required:"true"`
	Curl    string `json:"curl" required:"true" min:"1"`
}

type curlBasedRequest struct {
	Body CurlBased `body:"json" limit:"262144"`
}

// FromCurl is POST /api/scraper-simple/curl-based.
func FromCurl(api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_preview_scraper_from_curl", Routes: operation.Routes("POST /api/scraper-simple/curl-based"), Group: group,
		Summary: "Proposes scrapers for the answer to a request, given as a curl command", Description: "Not in this version.",
		Access: auth.Read, Rate: limits.Preview, Errors: []fault.Code{fault.NotSupported},
	}, func(context.Context, *operation.Caller, *curlBasedRequest) ([]Candidate, error) {
		return nil, fault.Invalid(fault.NotSupported, "curl", "curl commands are not supported by this version")
	})
}

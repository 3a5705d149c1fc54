package previews

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/fault"
)

// FieldsPreviewInput is the body of a preview of fields.
type FieldsPreviewInput struct {
	URL    string   `json:"url" max:"8192" required:"true" min:"1"`
	Fields []string `json:"fields" unique:"true" each:"max=100 form=column" required:"true" min:"1" max:"100" doc:"What to look for: price, brand, release date …"`
}

// FieldsPreview is the answer to a preview of fields.
type FieldsPreview struct {
	URL       string         `json:"url"`
	Fields    map[string]any `json:"fields" scraped:"url" doc:"Values on the page, by requested name; null if there is none"`
	ElapsedMs int64          `json:"elapsedMs"`
}

type fieldsRequest struct {
	MaxCharge *int64             `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused if it could cost more than this, in micros, millionths of a euro"`
	Body      FieldsPreviewInput `body:"json" limit:"65536"`
}

const fieldsID = "svc_preview_from_url"

// fields is POST /api/scraper-simple/preview-from-url.
func (r Resource) fields() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: fieldsID, Routes: operation.Routes("POST /api/scraper-simple/preview-from-url"),
		Group:   group,
		Summary: "Finds fields on a page by name",
		Description: "The names are hints. They are looked up in the page's structured data, " +
			"in its tables and label lists, and in elements with such names. What a proposal " +
			"for the page would find counts, too. If the server has a language model, it is " +
			"asked for the rest. If the page is a list, the first item counts. The page is " +
			"fetched and charged like any other. If none of the fields is found, it costs " +
			"nothing, and the header Shoal-Reason says why. Nothing is saved.",
		Access: auth.Read, Agents: operation.Spends, Rate: limits.Preview, Timeout: trial.Timeout,
		Errors: append([]fault.Code{fault.TypeNotRunnable}, trial.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *fieldsRequest) (FieldsPreview, error) {
		began := r.Clock.Now()
		by := api.Trying(from, fieldsID)
		found, err := r.Trials.Look(ctx, by, in.Body.URL, in.Body.Fields,
			in.MaxCharge)
		api.Tried(from, by)
		return FieldsPreview{URL: in.Body.URL, Fields: found,
			ElapsedMs: r.Clock.Now().Sub(began).Milliseconds()}, err
	})
}

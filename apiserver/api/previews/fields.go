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
	Fields    map[string]any `json:"fields" scraped:"url" doc:"What the page says, by the names asked for; null where it says nothing"`
	ElapsedMs int64          `json:"elapsedMs"`
}

type fieldsRequest struct {
	MaxCharge *int64             `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused rather than cost more, in micros, millionths of a euro"`
	Body      FieldsPreviewInput `body:"json" limit:"65536"`
}

const fieldsID = "svc_preview_from_url"

// fields is POST /api/scraper-simple/preview-from-url.
func (r Resource) fields() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: fieldsID, Routes: operation.Routes("POST /api/scraper-simple/preview-from-url"),
		Group:   group,
		Summary: "Looks for fields on a page by their names",
		Description: "The names are hints. They are looked up in what the page states for " +
			"machines, in its tables and lists of labels, and in elements that are called so. " +
			"What a proposal for the page would find counts, too. Where the server has one, a " +
			"language model is asked for the rest. Of a list the first item counts. The page is " +
			"fetched and paid like any other. One that says nothing of what is asked costs " +
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

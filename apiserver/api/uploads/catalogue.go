package uploads

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/upload"
)

// CatalogueInput is the JSON body of a product file. If the file itself is the body, format is a
// query parameter.
type CatalogueInput struct {
	Format  upload.Format `json:"format" required:"true" not:"xlsx" code:"BAD_FORMAT" doc:"Format of the file: csv or jsonl"`
	Content string        `json:"content" required:"true" alone:"json" doc:"The file's text"`
}

type catalogueRequest struct {
	Body   CatalogueInput    `body:"json" limit:"2000000"`
	Stream *operation.Stream `stream:"text/csv,application/x-ndjson,application/jsonl"`
}

// CatalogueFile is a product file.
type CatalogueFile struct {
	ID       ids.ID                `json:"id"`
	Format   upload.Format         `json:"format"`
	Bytes    int64                 `json:"bytes" min:"0"`
	By       string                `json:"by" doc:"Subject of the admin who sent it"`
	State    client.CatalogueState `json:"state" doc:"READING while the file is imported, then READY or FAILED"`
	SentAt   api.Time              `json:"sentAt"`
	EndedAt  api.Time              `json:"endedAt" doc:"When it became READY or FAILED; null until then"`
	Products uint64                `json:"products" doc:"How many products it has, once READY"`
	Message  string                `json:"message" doc:"Why it failed"`
}

func newCatalogueFile(c *client.Catalogue) CatalogueFile {
	return CatalogueFile{ID: c.ID, Format: upload.Format(c.Format), Bytes: c.Bytes, By: c.By,
		State: c.State, SentAt: api.Time(c.Begun), EndedAt: api.Time(c.Ended),
		Products: c.Products, Message: c.Message}
}

// putCatalogue is PUT /api/admin/catalogue.
func (r Resource) putCatalogue(json places) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_put_catalogue", Routes: operation.Routes("PUT /api/admin/catalogue"),
		Group:   group,
		Summary: "Sends the product catalogue that rows are matched with",
		Description: "The body is a csv or jsonl file by the rules of uploads, with one " +
			"product per row. The column id (or sku, article number) has its unique id of at " +
			"most 256 bytes. Other columns are gtin (ean, upc, isbn), brand (manufacturer), " +
			"model (mpn) and title (name), or their names in several languages. There are at " +
			"most 2,000,000 products. The old catalogue stays in use until the new one is " +
			"complete. A newer file replaces one that is still being read.",
		Access: auth.Admin, Rate: limits.Upload, Timeout: upload.MaxTime + answerTime,
		Sized: true, Admit: json.admit,
		Errors: []fault.Code{fault.BadFormat, fault.UnsupportedMediaType, fault.LengthRequired,
			fault.PayloadTooLarge, fault.UploadTooSlow, fault.OutOfSpace,
			fault.IngestCapacityGlobal, fault.UploadsNotTaken},
	}, func(ctx context.Context, from *operation.Caller, in *catalogueRequest) (CatalogueFile,
		error) {
		f := &file{Resource: r, from: from, format: in.Body.Format, content: in.Body.Content,
			stream: in.Stream}
		if f.format == upload.XLSX { // as a query parameter, where the schema does not forbid it
			return CatalogueFile{}, fault.Invalid(fault.BadFormat, "format",
				"must be csv or jsonl")
		}
		return f.takeCatalogue(ctx)
	})
}

// takeCatalogue accepts a product file. It stores the file in the blob store before it proposes the
// command that names it.
func (f *file) takeCatalogue(ctx context.Context) (CatalogueFile, error) {
	if err := f.malformed(); err != nil {
		return CatalogueFile{}, err
	}
	if f.from.View.IsShort() {
		return CatalogueFile{}, errNoSpace()
	}
	body, err := f.receive(ctx)
	if err != nil {
		return CatalogueFile{}, err
	}
	begin := client.BeginCatalogue{ID: f.IDs.New(), Format: string(f.format),
		By: f.from.Subject}
	key := blobstore.Key{Kind: blobstore.Catalogues, Owner: "service", ID: begin.ID.String()}
	written, err := f.Blobs.Put(ctx, key, body)
	if err != nil {
		return CatalogueFile{}, fmt.Errorf("keep a catalogue: %w", err)
	}
	begin.Bytes = written.Bytes
	begun, err := client.Do(ctx, f.Client, begin, nil)
	if err != nil {
		return CatalogueFile{}, err // a file that nothing names is removed as an orphan
	}
	return newCatalogueFile(&begun), nil
}

// CatalogueStatus is the state of the catalogue.
type CatalogueStatus struct {
	Current *CatalogueFile `json:"current" doc:"Catalogue that rows are matched with; null: none"`
	Next    *CatalogueFile `json:"next" doc:"Catalogue being read; null: none"`
	Failed  *CatalogueFile `json:"failed" doc:"Catalogue that failed since; null: none"`
}

// catalogue is GET /api/admin/catalogue/status.
func (r Resource) catalogue() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_catalogue_status",
		Routes: operation.Routes("GET /api/admin/catalogue/status"), Group: group,
		Summary: "Returns which catalogue rows are matched with",
		Access:  auth.Admin, Rate: limits.General,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (CatalogueStatus, error) {
		var s CatalogueStatus
		for state, to := range map[client.CatalogueState]**CatalogueFile{
			client.CatalogueReady: &s.Current, client.CatalogueReading: &s.Next,
			client.CatalogueFailed: &s.Failed} {
			if c := from.View.CatalogueIn(state); c != nil {
				file := newCatalogueFile(c)
				*to = &file
			}
		}
		return s, nil
	})
}

package uploads

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/upload"
)

// NextFile is the JSON body of a scraper's next file. If the file itself is the body, format and
// key column are query parameters.
type NextFile struct {
	Format    upload.Format `json:"format" required:"true" code:"BAD_FORMAT" doc:"Of the file"`
	KeyColumn string        `json:"keyColumn" max:"256" doc:"Column that identifies rows, if files add to each other and no key column is fixed yet; otherwise ignored"`
	Content   string        `json:"content" required:"true" alone:"json" doc:"The file: its text, or for a spreadsheet its bytes in Base64"`
}

type sendRequest struct {
	Scraper ids.ID            `path:"scraperId"`
	Upload  string            `query:"uploadId" agent:"hidden" pattern:"^[A-Za-z0-9_-]{16,64}$" doc:"Use the file sent in parts under this name. With a streamed body only, which must be empty."`
	Check   bool              `query:"check" agent:"hidden" default:"false" doc:"Only check whether the file would be accepted. With a streamed body only, which must be empty."`
	Body    NextFile          `body:"json" limit:"2000000"`
	Stream  *operation.Stream `stream:"text/csv,application/x-ndjson,application/jsonl,application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"`
}

// SentFile is the answer to the upload of another file.
type SentFile struct {
	JobID         ids.ID  `json:"jobId" doc:"The run of the import, RUNNING until the file is imported"`
	KeyColumnUsed *string `json:"keyColumnUsed" doc:"The key column by which rows are added; null: the file replaces the previous one"`
}

// send is POST /api/scraper/{scraperId}/file.
func (r Resource) send(json places) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_send_file",
		Routes: operation.Routes("POST /api/scraper/{scraperId}/file"), Group: group,
		Summary:  "Sends a scraper's next file",
		ToAgents: toAgents,
		Description: rules + " The new file's rows replace the old ones all at once, when all " +
			"are stored. If a matching setup of the group uses the scraper, its files add to " +
			"each other. A new key adds a row; for an existing key, empty values and new " +
			"columns are filled in. Nothing is changed or removed. If a key is repeated in the " +
			"file, its first row counts; rows without a key are ignored. Rows keep their ids. " +
			"If the scraper was moved, the next file brings its rows to the new group. The first such file fixes the key column. It is the matching setup's column, or " +
			"the first one present of EAN, GTIN, EAN13, barcode, SKU, MPN, product_id, id and " +
			"url. Otherwise keyColumn names it. A file without the key column ends as FAILED. " +
			"With check it answers 204 if the file would be accepted.",
		Access: auth.Write, Agents: operation.Destroys, Rate: limits.Upload,
		Idempotency: operation.Optional,
		Timeout:     upload.MaxTime + answerTime, Sized: true, Admit: json.admit,
		Errors: append(refusals(), fault.ScraperNotFound, fault.AlreadyRunning,
			fault.KeyColumnRequired, fault.KeyColumnInvalid),
	}, func(ctx context.Context, from *operation.Caller,
		in *sendRequest) (answer operation.OrNone[SentFile], err error) {
		f := &file{Resource: r, from: from, format: in.Body.Format, content: in.Body.Content,
			stream: in.Stream, check: in.Check, upload: in.Upload}
		f.usable = func(v *client.View) error {
			if err := r.idle(v, from.Customer, in.Scraper); err != nil {
				return err
			}
			scraper := v.Scraper(in.Scraper)
			if !v.Protects(scraper) {
				return nil
			}
			f.begin.Key, err = client.KeyColumnOf(ctx, r.Store, v, scraper, in.Body.KeyColumn)
			return err
		}
		f.begin.Scraper, f.begin.Asked = in.Scraper, in.Body.KeyColumn
		begun, err := f.acceptFile(ctx)
		if err != nil || in.Check {
			return answer, err
		}
		answer.Answer = &SentFile{JobID: begun.Job}
		if begun.Key != "" {
			answer.Answer.KeyColumnUsed = &begun.Key
		}
		return answer, nil
	})
}

// idle refuses a scraper that is not an upload's, is not the customer's, or is importing a file.
func (r Resource) idle(v *client.View, customer string, id ids.ID) error {
	scraper, err := ownership.Scraper(v, customer, id, "scraperId")
	if err != nil {
		return err
	}
	if scraper.Spec.Type != model.File {
		return fault.Invalid(fault.InvalidRequest, "scraperId",
			"the scraper is not of the type FILE")
	}
	if v.Internal(scraper) {
		return errInternal("scraperId")
	}
	for _, job := range v.OpenJobsOf(id) {
		if !v.Stuck(job.ID, r.Clock.Now().UnixMilli()) {
			return fault.New(fault.AlreadyRunning, "job %s of this scraper is importing a file",
				job.ID)
		}
	}
	return nil
}

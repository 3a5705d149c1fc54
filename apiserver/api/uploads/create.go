package uploads

import (
	"context"
	"strings"

	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/upload"
)

// FileScraper is the JSON body that creates an upload's scraper. If the file itself is the body,
// name and format are query parameters.
type FileScraper struct {
	Name    string        `json:"name" form:"filled-line" trim:"true" required:"true" min:"1" max:"200" doc:"Name of the scraper, unique in its group; surrounding spaces are removed"`
	Format  upload.Format `json:"format" required:"true" code:"BAD_FORMAT" doc:"Of the file"`
	Content string        `json:"content" required:"true" alone:"json" doc:"The file: its text, or for a spreadsheet its bytes in Base64"`
}

type createRequest struct {
	Group  ids.ID            `path:"groupId"`
	Upload string            `query:"uploadId" agent:"hidden" pattern:"^[A-Za-z0-9_-]{16,64}$" doc:"Use the file sent in parts under this name. With a streamed body only, which must be empty."`
	Check  bool              `query:"check" agent:"hidden" default:"false" doc:"Only check whether the file would be accepted. With a streamed body only, which must be empty."`
	Body   FileScraper       `body:"json" limit:"2000000"`
	Stream *operation.Stream `stream:"text/csv,application/x-ndjson,application/jsonl,application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"`
}

// NewFileScraper is the answer to the upload of a first file.
type NewFileScraper struct {
	Scraper scrapers.Scraper `json:"scraper"`
	JobID   ids.ID           `json:"jobId" doc:"The run of the import, RUNNING until the file is imported"`
}

const rules = "The body is the file, of at most 200 MB (csv, jsonl) or 36 MB (xlsx), with its " +
	"Content-Length. Or it is JSON of at most 2 MB with the file as its content; 8 such calls " +
	"are taken at a time. csv is UTF-8, separated by commas or semicolons. jsonl has one " +
	"object per line. In xlsx the first sheet is read, with values as stored: a date is a " +
	"number. Column names are the first row of csv and xlsx, and the keys of jsonl. A file has " +
	"at most 500 columns. Their names have at most 256 characters and do not begin with _. A " +
	"value has at most 32 KB, a row 1,000,000 bytes. Values are stored as text, nested values " +
	"as JSON. Empty values and empty rows are left out. An upload costs nothing and needs no " +
	"balance. If a file cannot be read, its run ends as FAILED with the reason, and the " +
	"previous file's rows stay. Slower than 0.6 Mbit/s over a minute, or longer than 60 " +
	"minutes: 408. A file may be sent in parts with PUT /api/uploads/{uploadId}."

const toAgents = "content is the file. A message has at most 1 MB, so a file less. Column " +
	"names are the first row of csv and xlsx, and the keys of jsonl."

// create is POST /api/scraper/group/{groupId}/file-scraper.
func (r Resource) create(json places) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_create_file_scraper",
		Routes: operation.Routes("POST /api/scraper/group/{groupId}/file-scraper"), Group: group,
		Summary:     "Makes a scraper from an uploaded file",
		ToAgents:    toAgents,
		Description: rules + " With check it answers 204 if the file would be accepted.",
		Access:      auth.Write, Agents: operation.Adds, Rate: limits.Upload,
		Idempotency: operation.Optional, Status: 201,
		Timeout: upload.MaxTime + answerTime, Sized: true, Admit: json.admit,
		Errors: append(refusals(), fault.NameTaken, fault.LimitReached, fault.PlanLimitReached),
	}, func(ctx context.Context, from *operation.Caller,
		in *createRequest) (answer operation.OrNone[NewFileScraper], err error) {
		name := strings.TrimSpace(in.Body.Name)
		f := &file{Resource: r, from: from, format: in.Body.Format, content: in.Body.Content,
			stream: in.Stream, check: in.Check, upload: in.Upload}
		f.usable = func(v *client.View) error {
			group, err := ownership.Group(v, from.Customer, in.Group, "groupId")
			if err != nil {
				return err
			}
			if !group.Of.IsZero() {
				return errInternal("groupId")
			}
			if err := nameTaken(v, from.Customer, in.Group, name); err != nil {
				return err
			}
			return client.RoomForScraper(v, from.Customer, f.begin.NewScraper.Cap)
		}
		f.begin.NewScraper = &client.PutScraper{Create: true, ID: r.IDs.New(),
			Customer: from.Customer, Group: in.Group,
			Spec: model.Scraper{Name: name, Type: model.File},
			Cap:  r.Plans.CapOf(from.View, from.Customer, plans.MaxScrapers)}
		begun, err := f.acceptFile(ctx)
		switch fault.CodeOf(err) {
		case fault.NameTaken:
			view := r.Client.View()
			if taken := nameTaken(view, from.Customer, in.Group, name); taken != nil {
				err = taken
			}
		case fault.GroupNotFound: // the group was deleted while the file arrived
			err = ownership.NoGroup("groupId")
		}
		if err != nil || in.Check {
			return answer, err
		}
		view, err := r.Client.Fresh(ctx)
		if err != nil {
			return answer, err
		}
		made := view.Scraper(begun.Scraper)
		if made == nil {
			return answer, fault.Invalid(fault.ScraperNotFound, "scraper",
				"the scraper was deleted meanwhile")
		}
		answer.Answer = &NewFileScraper{Scraper: scrapers.NewScraper(view, made),
			JobID: begun.Job}
		return answer, nil
	})
}

// nameTaken is the fault if a scraper in the group has the name, nil if none has.
func nameTaken(v *client.View, customer string, group ids.ID, name string) error {
	other := v.UploadByName(customer, group, name)
	if other == nil {
		other = v.ScraperByName(customer, name)
	}
	if other == nil || other.Group != group {
		return nil
	}
	return &operation.TakenName{ScraperID: other.ID, Type: string(other.Spec.Type),
		Err: fault.Invalid(fault.NameTaken, "name", "a scraper of the group has this name")}
}

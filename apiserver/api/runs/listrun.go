package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const listRunID = "svc_run_scraper_url_list"

// listRunTime is how long receiving the largest list may take.
const listRunTime = 20 * time.Minute

// ListRun is the body of a list run.
type ListRun struct {
	GroupID           ids.ID            `json:"groupId" doc:"Group that stores the rows; required without scraperId"`
	Name              string            `json:"name" max:"200" form:"line" doc:"Name of the list's scraper, unique per customer; required without scraperId. Resend it when retrying a failed call: it prevents a second run."`
	URLs              []string          `json:"urls" each:"max=8192 code=INVALID_URL" alone:"json" max:"100000" code:"LIST_TOO_LARGE" doc:"The addresses"`
	EndpointTag       string            `json:"endpointTag" max:"200" doc:"What reads the addresses, in place of fields: websitecontacts (at most 5,000 addresses, keys of the scope LLM_FULL) or the tag of a plugin. Plugins are /plugin/marketplace/pdp and /plugin/marketplace/search. The tag is never inferred."`
	ScraperID         ids.ID            `json:"scraperId" doc:"Run an existing list scraper again"`
	TemplateScraperID ids.ID            `json:"templateScraperId" doc:"Use this scraper's recipe (type, fields, pagination, politeness) on the addresses"`
	Type              model.ScraperType `json:"type" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS,APPLICATION_LD_JSON" doc:"Only with itemsConfig; default: SINGLE_PRODUCT"`
	ItemsConfig       []model.Field     `json:"itemsConfig" max:"500" doc:"The fields of a row. Give exactly one of itemsConfig, templateScraperId and scraperId."`
	Rerun             bool              `json:"rerun" doc:"Run only the addresses that were never charged under this scraper"`
	Force             bool              `json:"force" doc:"Run all addresses again"`
	MaxChargeMicros   *int64            `json:"maxChargeMicros" agent:"required" min:"0" doc:"The run stops before it costs more than this, in micros, millionths of a euro"`
}

// LaunchedListRun is the answer to a list run.
type LaunchedListRun struct {
	JobID             ids.ID         `json:"jobId"`
	ScraperID         ids.ID         `json:"scraperId"`
	Tag               *string        `json:"tag"`
	LinksQueued       uint32         `json:"linksQueued"`
	DuplicatesDropped uint32         `json:"duplicatesDropped" doc:"Addresses that were already in the list"`
	Status            model.JobState `json:"status" doc:"PENDING; FAILED for website contacts if the customer has never topped up"`
	Message           string         `json:"message,omitempty" doc:"Why the run failed at once"`
}

type listRunRequest struct {
	Body   ListRun           `body:"json" limit:"33554432"`
	Stream *operation.Stream `stream:"text/uri-list,application/x-ndjson"`
}

// Validate implements operation.Validator. It checks what depends on neither state nor addresses.
func (r *listRunRequest) Validate() fault.List {
	b := &r.Body
	if b.EndpointTag != "" && b.EndpointTag != model.WebsiteContacts &&
		!slices.Contains(extract.Tags(), b.EndpointTag) {
		return fault.List{fault.Invalid(fault.TagNotResolved, "endpointTag",
			"nothing has the tag %.100q", b.EndpointTag)}
	}
	var faults fault.List
	invalid := func(field, text string) {
		faults = append(faults, fault.Invalid(fault.InvalidRequest, field, "%s", text))
	}
	sources := 0
	for _, given := range []bool{!b.ScraperID.IsZero(), !b.TemplateScraperID.IsZero(),
		len(b.ItemsConfig) > 0} {
		if given {
			sources++
		}
	}
	switch {
	case b.EndpointTag == "" && sources != 1:
		invalid("itemsConfig", "exactly one of itemsConfig, templateScraperId and "+
			"scraperId is needed")
	case b.EndpointTag != "" && (len(b.ItemsConfig) > 0 || !b.TemplateScraperID.IsZero()):
		invalid("endpointTag", "stands without itemsConfig and templateScraperId")
	}
	if b.Type != "" && len(b.ItemsConfig) == 0 {
		invalid("type", "stands with itemsConfig only")
	}
	if b.Rerun && b.Force {
		invalid("force", "rerun and force exclude each other")
	}
	if b.ScraperID.IsZero() {
		if b.GroupID.IsZero() {
			invalid("groupId", "is required")
		}
		if strings.TrimSpace(b.Name) == "" {
			invalid("name", "is required")
		}
		if r.Stream == nil && len(b.URLs) == 0 {
			invalid("urls", "must be at least 1 item")
		}
	}
	return faults
}

// startList is POST /api/scraper/url-list-run.
func (r Resource) startList() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: listRunID, Routes: operation.Routes("POST /api/scraper/url-list-run"), Group: group,
		Summary: "Launches a run over a list of addresses",
		ToAgents: "urls has at most 100,000 addresses, but a message at most 1 MB: some " +
			"20,000. With scraperId a list runs again: rerun takes addresses never charged, " +
			"force takes all.",
		Description: "The list comes as urls of a JSON body (at most 100,000), or as the body " +
			"itself (at most 5,000,000). The body is text/uri-list (one address per line, # " +
			"begins a comment) or application/x-ndjson ({\"url\": …} per line). The other " +
			"members are then query parameters. If one address is invalid, the whole list is " +
			"refused and the address named; nothing is saved or charged. Addresses with the " +
			"same canonical form are taken once. The first run of a list creates its scraper. " +
			"With scraperId the list runs again: rerun takes addresses never charged, force " +
			"takes all. Both take them from urls or, without urls, from the newest list. urls " +
			"without either are all run. With endpointTag websitecontacts each website has one " +
			"row: website, email, emails_all, email_source_url, domain_match (yes, no, unknown " +
			"or empty), status, checked_at. EMAIL_FOUND and NO_EMAIL_PUBLISHED cost two " +
			"credits. EMAIL_NOT_EXTRACTABLE, PAGE_NOT_READABLE, SITE_UNREACHABLE, " +
			"SOCIAL_PROFILE_ONLY and DAILY_LIMIT_REACHED cost nothing. The daily limits (UTC) " +
			"are 2,000 websites, 800 that end uncharged, and 3 reads of a domain. If the " +
			"customer has never topped up, the run fails at once with a message. With the tag " +
			"of a plugin, rows are those of MARKETPLACE, described at PUT /api/scraper.",
		Access: auth.Write, Agents: operation.Spends,
		Feature: plans.ManualRun, Rate: limits.ListRun,
		Idempotency: operation.Optional, Timeout: listRunTime,
		Errors: append([]fault.Code{fault.InvalidURL, fault.ListTooLarge, fault.TagNotResolved,
			fault.GroupNotFound,
			fault.ScraperNotFound, fault.NameTaken, fault.ListAlreadyRun, fault.TypeNotRunnable,
			fault.SchemaValidation, fault.UploadTooSlow, fault.PlanLimitReached},
			launch.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *listRunRequest) (LaunchedListRun,
		error) {
		by := api.Launching(from, listRunID)
		launched, err := r.Launcher.StartList(ctx, by, in.list())
		from.Job = by.Job
		if err != nil {
			return LaunchedListRun{}, err
		}
		return newListRun(&launched), nil
	})
}

func (r *listRunRequest) list() *launch.List {
	b := &r.Body
	list := &launch.List{Group: b.GroupID, Name: b.Name, URLs: b.URLs, Tag: b.EndpointTag,
		Scraper: b.ScraperID, Template: b.TemplateScraperID, Type: b.Type, Fields: b.ItemsConfig,
		Rerun: b.Rerun, Force: b.Force, MaxCharge: b.MaxChargeMicros}
	if r.Stream != nil {
		list.Stream, list.Line = r.Stream, launch.JSONLine
		if r.Stream.ContentType == "text/uri-list" {
			list.Line = launch.URILine
		}
	}
	return list
}

func newListRun(l *client.Launched) LaunchedListRun {
	started := LaunchedListRun{JobID: l.Job, ScraperID: l.Scraper, LinksQueued: l.Links,
		DuplicatesDropped: l.Dropped,
		Status:            l.State, Message: l.Message}
	if l.Tag != "" {
		tag := l.Tag
		started.Tag = &tag
	}
	return started
}

package scrapers

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules"
)

const putDescription = "Always send the whole scraper. An id that is not one of the customer's " +
	"scrapers is refused. Types that this version cannot run are refused with " +
	"type_not_runnable. For a FILE scraper, sent with its id, only name, groupRef and " +
	"config.retentionCount may change; settings that it does not have are refused. Rows stay " +
	"in the group in which they were stored. MARKETPLACE and SEARCH_ENGINE_SEARCH have fixed " +
	"fields. Shop rows have position (in a list), title, url, price, priceMax, listPrice, " +
	"currency, availability, condition and brand. They also have sku, gtin, mpn, productId, " +
	"category, rating, reviewCount, image, images, description and platform. Search rows have " +
	"position, title, url, snippet, kind, query and page. APPLICATION_LD_JSON makes a row for " +
	"each thing in the page's structured data: a Product, each element of an ItemList, each " +
	"variant of a ProductGroup. Its properties are columns. Names of nested properties are " +
	"joined with an underscore (offers_price, brand_name). Several values become an array, and " +
	"references are followed. itemsConfig may select and rename columns, by column or by path " +
	"(offers.price). AI_CONF has the properties of its schema. A row that does not fit the " +
	"schema is neither stored nor charged. If a page has only such rows, it ends with the " +
	"error row_rejected. If the language model was asked for missing values and gave no " +
	"answer, the error is model_unavailable or model_limit_reached. If the page states nothing " +
	"and there is no model, it is no_rows."

var putErrors = []fault.Code{fault.SchemaValidation, fault.TypeNotRunnable,
	fault.NotFound, fault.NameTaken, fault.LimitReached, fault.PlanLimitReached,
	fault.FeatureNotInPlan, fault.SchemaGone}

type putRequest struct {
	Body Scraper `body:"json"`
}

// put is PUT /api/scraper.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_create_scraper", Routes: operation.Routes("PUT /api/scraper"), Group: group,
		Summary:     "Creates a scraper, or replaces the one with the given id",
		Description: putDescription,
		Access:      auth.Write, Agents: operation.Adds,
		Rate: limits.General, Idempotency: operation.Required,
		Invalid: fault.SchemaValidation,
		Errors:  putErrors,
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Scraper, error) {
		saved, err := r.save(ctx, from, &in.Body)
		if err != nil {
			return Scraper{}, err
		}
		return NewScraper(r.Reader.View(), saved), nil
	})
}

type putV2Request struct {
	Body EnrichedScraper `body:"json"`
}

// putV2 is PUT /api/scraper/v2.
func (r Resource) putV2() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_create_scraper_v2", Routes: operation.Routes("PUT /api/scraper/v2"), Group: group,
		Summary: "Creates a scraper, or replaces the one with the given id; returns the " +
			"enriched form",
		Description: putDescription +
			" Members that only the enriched form has are ignored.",
		Access: auth.Write, Agents: operation.Adds,
		Rate: limits.General, Idempotency: operation.Required,
		Invalid: fault.SchemaValidation,
		Errors:  putErrors,
	}, func(ctx context.Context, from *operation.Caller, in *putV2Request) (EnrichedScraper,
		error) {
		plain := Scraper{Recipe: in.Body.Recipe}
		if in.Body.Schema != nil {
			plain.Schema = &model.SchemaRef{ID: in.Body.Schema.ID}
		}
		saved, err := r.save(ctx, from, &plain)
		if err != nil {
			return EnrichedScraper{}, err
		}
		return newEnriched(r.Reader.View(), saved), nil
	})
}

// save creates or replaces a scraper with a valid body.
func (r Resource) save(ctx context.Context, from *operation.Caller, b *Scraper) (*client.Scraper,
	error) {
	spec := model.Scraper{Name: b.Name, Type: b.Type, SourceConfig: b.SourceConfig,
		ItemsConfig: b.ItemsConfig,
		Schema:      b.Schema, PostProcessRules: b.PostProcessRules, Schedule: b.Schedule,
		ScheduleTimezone: b.ScheduleTimezone,
		Config:           b.Config}
	if err := r.checkSave(ctx, from, b, &spec); err != nil && !from.OnlyAnswers() {
		return nil, err
	}
	put := client.PutScraper{Create: b.ID.IsZero(), ID: b.ID, Customer: from.Customer,
		Group: b.GroupRef, Spec: spec}
	if put.Create {
		put.ID = r.IDs.New()
		put.Cap = r.Plans.CapOf(from.View, from.Customer, plans.MaxScrapers)
	}
	saved, err := client.Do(ctx, r.Client, put, from.Call)
	switch fault.CodeOf(err) {
	case fault.GroupNotFound:
		return nil, noGroup()
	case fault.NameTaken:
		return nil, taken(r.Reader.View(), &put, err)
	}
	return &saved, err
}

// checkSave returns what is wrong with a scraper that is saved, by its body and by the state.
func (r Resource) checkSave(ctx context.Context, from *operation.Caller, b *Scraper,
	spec *model.Scraper) error {
	var known *client.Scraper
	if !b.ID.IsZero() {
		var err error
		if known, err = ownership.Scraper(from.View, from.Customer, b.ID, "id"); err != nil {
			return fault.Invalid(fault.NotFound, "id", "there is no such scraper")
		}
	}
	if spec.Schedule != "" && (known == nil || known.Spec.Schedule != spec.Schedule) {
		if err := r.Plans.Check(from.View, from.Customer, plans.DailyScheduler); err != nil {
			return err
		}
	}
	faults := append(r.check(from, spec, known),
		rules.Check(ctx, spec.PostProcessRules, r.ExchangeRates)...)
	if _, err := ownership.Group(from.View, from.Customer, b.GroupRef, "groupRef"); err != nil {
		faults = append(faults, noGroup())
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// taken adds to a refusal which scraper has the name.
func taken(v *client.View, put *client.PutScraper, refusal error) error {
	other := v.UploadByName(put.Customer, put.Group, put.Spec.Name)
	if other == nil {
		other = v.ScraperByName(put.Customer, put.Spec.Name)
	}
	if other == nil || other.ID == put.ID { // the name was freed meanwhile
		return refusal
	}
	return &operation.TakenName{ScraperID: other.ID, Type: string(other.Spec.Type), Err: refusal}
}

// noGroup is a 400, like all validation of a scraper's body.
func noGroup() *fault.Error {
	return fault.Invalid(fault.SchemaValidation, "groupRef", "there is no such group")
}

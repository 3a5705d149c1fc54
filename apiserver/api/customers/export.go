package customers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/data"
	"shoal.dev/shoal/apiserver/api/groups"
	"shoal.dev/shoal/apiserver/api/jobs"
	"shoal.dev/shoal/apiserver/api/keys"
	"shoal.dev/shoal/apiserver/api/notifications"
	"shoal.dev/shoal/apiserver/api/schemas"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/api/signin"
	"shoal.dev/shoal/apiserver/api/sites"
	"shoal.dev/shoal/apiserver/api/subscriptions"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/api/webhooks"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// exportTime is how long sending an export may take.
	exportTime = 6 * time.Hour
	// How much is in memory at once: runs, transactions, links and rows.
	exportedAtOnce = 1_000
	exportBytes    = 1 << 20 // of rows
)

// exported is a line of an export.
type exported struct {
	Kind  string `json:"kind"`
	Value any    `json:"value"`
}

// link is an address in the list of a run.
type link struct {
	JobID ids.ID `json:"jobId"`
	URL   string `json:"url"`
}

// linkError is a link of a run that failed.
type linkError struct {
	JobID ids.ID         `json:"jobId"`
	Error jobs.LinkError `json:"error"`
}

// accountPasskey is a passkey of an account.
type accountPasskey struct {
	AccountID ids.ID         `json:"accountId"`
	Passkey   signin.Passkey `json:"passkey"`
}

// exportedShare is an address that a group is shared with.
type exportedShare struct {
	GroupID ids.ID `json:"groupId"`
	Email   string `json:"email"`
}

// siteLink is a link of a site.
type siteLink struct {
	SiteID ids.ID         `json:"siteId"`
	Link   sites.SiteLink `json:"link"`
}

// export is GET /api/customer/export.
func (r Resource) export() *operation.Operation {
	const media = "application/x-ndjson"
	return operation.Define(operation.Declaration{
		ID: "svc_export_customer", Routes: operation.Routes("GET /api/customer/export"),
		Group:   group,
		Summary: "Returns all of the customer's data as one file",
		Description: "Each line is {kind, value}. First come profile, additionalInfo, " +
			"notificationPreferences, account with each of its passkeys (accountId, passkey), " +
			"and grant. Then come wallet, subscription, invoice, key, webhook, group with each " +
			"category and share (groupId, email), schema and scraper. Then come site with each " +
			"siteLink (siteId, link), notification, feedback and transaction. Last come run " +
			"with each link (jobId, url) and linkError (jobId, error), and row. Values are as " +
			"other operations return them; accounts, keys and webhooks have no secrets. Links, " +
			"link errors and rows are all those still kept, also from deleted groups and " +
			"scrapers. The call counts as one call, and as an open stream while it is sent. An " +
			"interrupted answer ends without its last chunk.",
		Access: auth.Read, Rate: limits.Read, Timeout: exportTime, Media: []string{media},
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (operation.Download, error) {
		upto, err := r.Store.Horizon(ctx)
		if err != nil {
			return operation.Download{}, fmt.Errorf("rows to export: %w", err)
		}
		e := exporter{Resource: r, view: from.View, customer: from.Customer, upto: upto,
			groups: map[ids.ID]bool{}}
		for _, group := range e.view.Groups(e.customer) {
			e.shown = append(e.shown, client.Shown(e.view, group.ID, ids.ID{}))
		}
		if e.watch, err = export.StartWatch(ctx, r.Store, e.shown, upto); err != nil {
			return operation.Download{}, err
		}
		return operation.Download{ContentType: media, Name: "customer.jsonl",
			Write: func(ctx context.Context, w io.Writer) error {
				e.lines = json.NewEncoder(w)
				e.lines.SetEscapeHTML(false)
				return e.write(ctx)
			}}, nil
	})
}

// exporter writes a customer's export, as of one view.
type exporter struct {
	Resource
	view     *client.View
	customer string
	upto     int64 // place of the last row
	shown    []rowstore.Scope
	watch    export.Watch
	lines    *json.Encoder
	groups   map[ids.ID]bool // groups that have, or had, rows of the customer
	order    []ids.ID        // groups in the order of meet
}

func (e *exporter) line(kind string, value any) error {
	return e.lines.Encode(exported{kind, value})
}

func (e *exporter) write(ctx context.Context) error {
	for _, part := range []func(context.Context) error{e.account, e.definitions, e.sites,
		e.notices, e.feedback, e.transactions, e.runs, e.rows} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// account writes what exists once for each customer, then keys and webhooks.
func (e *exporter) account(context.Context) error {
	profile := e.view.Profile(e.customer)
	for _, one := range []exported{
		{"profile", newCustomer(e.customer, profile, e.view.Subscription(e.customer))},
		{"additionalInfo", newInfo(profile)},
		{"notificationPreferences", newPreferences(e.view.Inbox(e.customer))},
	} {
		if err := e.lines.Encode(one); err != nil {
			return err
		}
	}
	if err := e.people(); err != nil {
		return err
	}
	if err := e.line("wallet", wallet.New(e.view, e.customer)); err != nil {
		return err
	}
	if s := e.view.Subscription(e.customer); s != nil {
		if err := e.line("subscription", subscriptions.NewSubscription(s)); err != nil {
			return err
		}
	}
	for _, invoice := range e.view.Invoices(e.customer) {
		if err := e.line("invoice", subscriptions.NewInvoice(invoice)); err != nil {
			return err
		}
	}
	for _, key := range e.view.Keys(e.customer) {
		if err := e.line("key", keys.NewKey(key, e.Touches)); err != nil {
			return err
		}
	}
	for _, hook := range e.view.Webhooks(e.customer) {
		if err := e.line("webhook", webhooks.NewWebhook(hook, e.Clock.Now())); err != nil {
			return err
		}
	}
	return nil
}

// people writes the customer's accounts with their passkeys, and the grants of programs.
func (e *exporter) people() error {
	for _, account := range e.view.AccountsOf(e.customer) {
		if err := e.line("account", signin.NewAccount(account)); err != nil {
			return err
		}
		for _, p := range e.view.Passkeys(account.ID) {
			passkey := accountPasskey{account.ID, signin.NewPasskey(p)}
			if err := e.line("passkey", passkey); err != nil {
				return err
			}
		}
	}
	for _, grant := range e.view.GrantsOf(e.customer) {
		if err := e.line("grant", signin.NewGrant(grant)); err != nil {
			return err
		}
	}
	return nil
}

// definitions writes groups, schemas and scrapers.
func (e *exporter) definitions(context.Context) error {
	for _, group := range e.view.Groups(e.customer) {
		e.meet(group.ID)
		if err := e.line("group", groups.NewGroup(e.view, group)); err != nil {
			return err
		}
		for _, category := range e.view.Categories(group.ID) {
			if err := e.line("category", data.NewCategory(category)); err != nil {
				return err
			}
		}
		for _, share := range e.view.Shares(group.ID) {
			if err := e.line("share", exportedShare{group.ID, share.Email}); err != nil {
				return err
			}
		}
	}
	for _, schema := range e.view.Schemas(e.customer) {
		if err := e.line("schema", schemas.NewSchema(schema)); err != nil {
			return err
		}
	}
	var err error
	e.view.Scrapers(e.customer, func(s *client.Scraper) bool {
		err = e.line("scraper", scrapers.NewScraper(e.view, s))
		return err == nil
	})
	return err
}

// sites writes sites, each with its links if the row store has them.
func (e *exporter) sites(ctx context.Context) error {
	for _, site := range e.view.Sites(e.customer) {
		if err := e.line("site", sites.NewSite(site)); err != nil {
			return err
		}
		if err := e.siteLinks(ctx, site); err != nil {
			return err
		}
	}
	return nil
}

// siteLinks writes the links of a site: none if they are gone already, otherwise all or an error. A
// site may be sent again meanwhile.
func (e *exporter) siteLinks(ctx context.Context, site *client.Site) error {
	q := rowstore.SiteQuery{Version: site.Version, Site: site.ID, Limit: exportedAtOnce}
	for {
		part, err := e.Store.SiteLinks(ctx, q)
		if q.From == 0 && errors.Is(err, rowstore.ErrListUnknown) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("links to export of site %s: %w", site.ID, err)
		}
		for i := range part {
			l := siteLink{SiteID: site.ID, Link: sites.NewLink(&part[i])}
			if err := e.line("siteLink", l); err != nil {
				return err
			}
			q.From = part[i].Seq + 1
		}
		if len(part) < exportedAtOnce {
			return nil
		}
	}
}

// meet records a group whose rows will be written.
func (e *exporter) meet(group ids.ID) {
	if !e.groups[group] {
		e.groups[group] = true
		e.order = append(e.order, group)
	}
}

func (e *exporter) notices(context.Context) (err error) {
	e.view.Notices(e.customer, func(n *client.Notice) bool {
		err = e.line("notification", notifications.NewNotification(n))
		return err == nil
	})
	return err
}

func (e *exporter) feedback(context.Context) error {
	for _, f := range e.view.FeedbackOf(e.customer) {
		if err := e.line("feedback", Feedback{ID: f.ID, Text: f.Text,
			CreatedAt: api.Time(f.At)}); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) transactions(ctx context.Context) error {
	for before := (*rowstore.PastPlace)(nil); ; {
		part, err := e.History.EntriesBefore(ctx, e.view, e.customer, before, exportedAtOnce)
		if err != nil {
			return fmt.Errorf("ledger to export: %w", err)
		}
		for _, entry := range part {
			if err := e.line("transaction", wallet.NewTransaction(entry)); err != nil {
				return err
			}
			before = client.PlaceOf(entry)
		}
		if len(part) < exportedAtOnce {
			return nil
		}
	}
}

// runs writes runs, including those of deleted scrapers, each with its links and their errors.
func (e *exporter) runs(ctx context.Context) error {
	for place := (*rowstore.PastPlace)(nil); ; {
		part, err := e.History.RunsBefore(ctx, e.view, client.RunsOf{Customer: e.customer}, place,
			exportedAtOnce)
		if err != nil {
			return fmt.Errorf("history to export: %w", err)
		}
		for _, job := range part {
			e.meet(job.Group)
			if err := e.line("run", jobs.NewJob(e.view, job, e.customer)); err != nil {
				return err
			}
			if err := e.links(ctx, job); err != nil {
				return err
			}
			if err := e.linkErrors(ctx, job); err != nil {
				return err
			}
			place = &rowstore.PastPlace{Value: job.Queued, ID: job.ID}
		}
		if len(part) < exportedAtOnce {
			return nil
		}
	}
}

// links writes the links of a run: none if the list is gone already, otherwise all or an error.
func (e *exporter) links(ctx context.Context, job *client.Job) error {
	for from := uint32(0); ; {
		part, err := e.Store.Links(ctx, job.List, from, exportedAtOnce)
		if from == 0 && errors.Is(err, rowstore.ErrListUnknown) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("links to export of run %s: %w", job.ID, err)
		}
		for _, l := range part {
			if l.Seq >= job.Links {
				return nil // the list goes on with addresses that the run left out
			}
			if err := e.line("link", link{JobID: job.ID, URL: l.URL}); err != nil {
				return err
			}
			from = l.Seq + 1
		}
		if len(part) < exportedAtOnce {
			return nil
		}
	}
}

// linkErrors writes the errors of a run's links.
func (e *exporter) linkErrors(ctx context.Context, job *client.Job) error {
	next := jobs.ErrorsOf(e.view, e.Store, job)
	for {
		part, err := next(ctx)
		if len(part) == 0 || err != nil {
			return err
		}
		for _, one := range part {
			if err := e.line("linkError", linkError{JobID: job.ID, Error: one}); err != nil {
				return err
			}
		}
	}
}

func (e *exporter) rows(ctx context.Context) error {
	for _, group := range e.order {
		q := rowstore.ScanQuery{Scope: client.Shown(e.view, group, ids.ID{}), Upto: e.upto,
			Limit: exportedAtOnce, Bytes: exportBytes}
		for q.After < q.Upto {
			docs, last, err := e.Store.Scan(ctx, q)
			if err != nil {
				return fmt.Errorf("rows to export: %w", err)
			}
			for _, doc := range docs {
				if err := e.line("row", doc); err != nil {
					return err
				}
			}
			q.After = last
		}
	}
	return e.watch.Check(ctx)
}

package apiserver

import (
	"shoal.dev/shoal/apiserver/api/admin"
	"shoal.dev/shoal/apiserver/api/customers"
	"shoal.dev/shoal/apiserver/api/events"
	"shoal.dev/shoal/apiserver/api/groups"
	"shoal.dev/shoal/apiserver/api/jobs"
	"shoal.dev/shoal/apiserver/api/keys"
	"shoal.dev/shoal/apiserver/api/notifications"
	"shoal.dev/shoal/apiserver/api/previews"
	"shoal.dev/shoal/apiserver/api/runs"
	"shoal.dev/shoal/apiserver/api/schemas"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/api/signin"
	"shoal.dev/shoal/apiserver/api/sitemaps"
	"shoal.dev/shoal/apiserver/api/sites"
	"shoal.dev/shoal/apiserver/api/subscriptions"
	"shoal.dev/shoal/apiserver/api/system"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/api/webhooks"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/apiserver/portal"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/turns"
)

// resource is one folder of api/: the operations on one kind of thing.
type resource interface {
	Operations() []*operation.Operation
}

// issuerState reports whether there is an OpenID Connect issuer, and whether it is reachable.
func (s *Server) issuerState() (reachable, known bool) {
	if s.openID == nil {
		return false, false
	}
	return s.openID.State().Reachable, true
}

// catalog lists every resource of the customers' and operators' API, in the order of the
// specification. Resources about the server itself come last.
func (s *Server) catalog(document, agentDocument func() ([]byte, error)) []resource {
	c := &s.config
	history := client.NewHistory(c.Store)
	launcher := s.launcher()
	trials := &trial.Trials{Launcher: launcher, Client: c.Client, Store: c.Store,
		History: history, Clock: c.Clock,
		Values: c.Values}
	subscribing := subscriptions.Resource{Client: c.Client, IDs: c.IDs, Clock: c.Clock,
		Plans: s.plans, Payments: c.Payments, Logger: c.Logger}
	accounts, _ := c.Payments.(payment.Accounts) // nil if the provider keeps no accounts
	portalPath := ""
	if s.accounts != nil { // otherwise there is no portal
		portalPath = portal.Path
	}
	all := []resource{
		scrapers.Resource{Client: c.Client, Reader: c.Client, Store: c.Store, Clock: c.Clock,
			IDs: c.IDs, Guard: c.Guard, Plans: s.plans, ExchangeRates: c.ExchangeRates,
			Ceilings: scrapers.Ceilings{
				RequestsPerSecond: c.MaxHostRate, Connections: c.MaxHostConnections},
			KeepsBodies: c.Blobs != nil},
		runs.Resource{Launcher: launcher, Trials: trials, Client: c.Client, Clock: c.Clock,
			ExchangeRates: c.ExchangeRates, KeepsBodies: c.Blobs != nil},
		previews.Resource{Trials: trials, Clock: c.Clock, ExchangeRates: c.ExchangeRates,
			Places: turns.New(previews.MostPages, c.Clock), Reader: c.Reader},
		s.uploads(),
		jobs.Resource{Client: c.Client, Store: c.Store, History: history, Clock: c.Clock},
		s.rows(),
		groups.Resource{Client: c.Client, Store: c.Store, IDs: c.IDs, Plans: s.plans},
		sitemaps.Resource{Client: c.Client, Store: c.Store, Clock: c.Clock, IDs: c.IDs},
		sites.Resource{Client: c.Client, Store: c.Store, Launcher: launcher},
		schemas.Resource{Client: c.Client, IDs: c.IDs},
		wallet.Resource{Client: c.Client, IDs: c.IDs, Clock: c.Clock, History: history,
			Payments: c.Payments, Subscriptions: subscribing, Node: c.Node, Boot: c.Boot,
			Logger: c.Logger},
		subscribing,
		customers.Resource{Client: c.Client, Clock: c.Clock, IDs: c.IDs,
			Store: c.Store, History: history, Touches: s.touches, Agreement: c.UserAgreement,
			Portal: portalPath},
		keys.Resource{Client: c.Client, IDs: c.IDs, Clock: c.Clock, Touches: s.touches},
		notifications.Resource{Client: c.Client},
		events.Resource{Client: c.Client, Clock: c.Clock, History: history},
		webhooks.Resource{Client: c.Client, Clock: c.Clock, IDs: c.IDs, Guard: c.Guard},
		admin.Resource{Client: c.Client, Launcher: launcher, Plans: s.plans, Clock: c.Clock,
			IDs: c.IDs, Operator: c.Operator, Store: c.Store, History: history, Lag: c.Lag,
			Recount: c.Recount, Accounts: accounts},
		system.Resource{Client: c.Client, Clock: c.Clock, Stopping: s.stopping.Load,
			Issuer: s.issuerState, Metrics: c.Metrics, Document: document,
			Agents: agentDocument},
	}
	if s.accounts != nil {
		all = append(all, signin.Resource{Client: c.Client, Accounts: s.accounts,
			Sessions: s.chain.Auth, Grants: s.grants, Portal: portalPath,
			Agreement: len(c.UserAgreement) > 0, OpenID: s.signsIn})
	}
	return all
}

package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/admin"
	"shoal.dev/shoal/apiserver/api/data"
	"shoal.dev/shoal/apiserver/api/groups"
	"shoal.dev/shoal/apiserver/api/jobs"
	"shoal.dev/shoal/apiserver/api/keys"
	"shoal.dev/shoal/apiserver/api/previews"
	"shoal.dev/shoal/apiserver/api/runs"
	"shoal.dev/shoal/apiserver/api/schemas"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/api/system"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// catalog is every operation of the customers' and the operators' API, in the order of the
// specification.
func catalog(s api.Services) []*operation.Operation {
	return []*operation.Operation{
		// 4.1 Scrapers
		scrapers.Put(s),
		scrapers.PutV2(s),
		scrapers.GetV2(s),
		scrapers.Get(s),
		scrapers.List(s),
		scrapers.PreviewRule(s),
		runs.Start(s),
		runs.Stop(s),
		runs.Sample(s),
		scrapers.Parameters(),
		// 4.2 Preview
		previews.FromURL(s),
		previews.FromCurl(s),
		previews.Fields(s),
		// 4.3 Scraper jobs
		jobs.History(s),
		jobs.Errors(s),
		jobs.Stream(s),
		jobs.StreamOfScraper(s),
		// 4.4 Data
		data.Group(s),
		data.Read(s),
		// 4.5 Groups
		groups.List(s),
		groups.Put(s),
		// 4.8 Schemas
		schemas.Put(s),
		schemas.List(s),
		schemas.Get(s),
		schemas.PreviewDelete(s),
		schemas.Delete(s),
		schemas.Items(s),
		schemas.GetGlobal(s),
		schemas.ListGlobal(s),
		schemas.PutGlobal(s),
		// 4.11 Wallet and billing
		wallet.Get(s),
		wallet.Transactions(s),
		wallet.Prices(s),
		// 4.13 API keys
		keys.WhoAmI(s),
		keys.Generate(s),
		keys.List(s),
		keys.Delete(s),
		// 4.14 List runs (decisions 8 and 9)
		runs.StartList(s),
		// Administration (decision 32)
		admin.AdjustWallet(s),
		admin.Status(s),
		admin.Recount(s),
		admin.Nodes(s),
		admin.Work(s),
		admin.Drain(s),
		admin.Undrain(s),
		admin.RemoveNode(s),
		admin.Backup(s),
		admin.Restore(s),
	}
}

// machines is what is asked of the server itself.
func machines(s api.Services, stopping func() bool, metrics prometheus.Gatherer,
	document func() []byte) []*operation.Operation {
	return []*operation.Operation{
		system.Healthz(),
		system.Readyz(s, stopping),
		system.Metrics(metrics),
		system.APIDocs(document),
	}
}

package fetcher

import (
	"context"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/model"
)

// Web is the world outside: one try at a page, and what robots.txt says. It is safe for concurrent
// use.
type Web interface {
	// Tiers are the ways of fetching that there are.
	Tiers() model.TierSet
	// Fetch makes one try. Its error is a *web.Failure, web.ErrBusy, or the error of BeforeHop or
	// of ctx as it is.
	Fetch(ctx context.Context, req web.Request) (*web.Page, error)
	// KnowsRules says that CheckRules of a canonical address would answer without a request.
	KnowsRules(url string) bool
	// CheckRules is nil when robots.txt allows a canonical address, with the delay that it asks for
	// between two starts. Its error is a *web.Failure, or ctx's.
	CheckRules(ctx context.Context, url string) (delay time.Duration, err error)
}

// HTTPWeb is the Web over HTTP, and WebConfig what it is set by.
type (
	HTTPWeb   = web.Web
	WebConfig = web.Config
)

// OpenWeb makes a Web over the one way out. It fails when the browser does not start.
func OpenWeb(ctx context.Context, client *egress.Client, config WebConfig) (*HTTPWeb, error) {
	return web.Open(ctx, client, config)
}

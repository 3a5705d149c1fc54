package fetcher

import (
	"context"

	"shoal.dev/shoal/fetcher/internal/keeping"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/egress"
)

// Web makes one try at a page, and checks robots.txt.
type Web = unit.Web

// HTTPWeb is the Web over HTTP.
type HTTPWeb = web.Web

// WebConfig configures an HTTPWeb.
type WebConfig = web.Config

// Bodies is a blob store for page bodies.
type Bodies = keeping.Store

// OpenWeb makes a Web over one egress client. It fails if the browser does not start.
func OpenWeb(ctx context.Context, client *egress.Client, config WebConfig) (*HTTPWeb, error) {
	return web.Open(ctx, client, config)
}

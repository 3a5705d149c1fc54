package fetcher

import (
	"context"

	"shoal.dev/shoal/fetcher/internal/keeping"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/egress"
)

// Web is the world outside: one try at a page, and what robots.txt says.
type Web = unit.Web

// HTTPWeb is the Web over HTTP.
type HTTPWeb = web.Web

// WebConfig is what an HTTPWeb is set by.
type WebConfig = web.Config

// Bodies is a blob store, as far as bodies are kept there.
type Bodies = keeping.Store

// OpenWeb makes a Web over the one way out. It fails when the browser does not start.
func OpenWeb(ctx context.Context, client *egress.Client, config WebConfig) (*HTTPWeb, error) {
	return web.Open(ctx, client, config)
}

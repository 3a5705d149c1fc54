package suite

import (
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
)

// The API as its users call it.
type (
	Client   = api.Client
	Launched = api.Launched
	Node     = api.Node
	Problem  = api.Problem
	Progress = api.Progress
	Scraper  = api.Scraper
)

// CodeOf is the code of an error answer, "" for anything else.
func CodeOf(err error) string { return api.CodeOf(err) }

// NewKey is a new idempotency key.
func NewKey() string { return api.NewKey() }

// NextLink follows the synthetic web's chains.
func NextLink() model.Pagination { return api.NextLink() }

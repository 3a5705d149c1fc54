package suite

import (
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
)

// The client of the API.
type (
	Client   = api.Client
	Launched = api.Launched
	Node     = api.Node
	Problem  = api.Problem
	Progress = api.Progress
	Scraper  = api.Scraper
)

// CodeOf returns the code of an error answer, "" for anything else.
func CodeOf(err error) string { return api.CodeOf(err) }

// NewKey returns a new idempotency key.
func NewKey() string { return api.NewKey() }

// NextLink follows the synthetic web's chains.
func NextLink() model.Pagination { return api.NextLink() }

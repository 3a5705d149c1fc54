package scrapers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestParameters(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "limits", As: apitest.Reader,
		Do: "GET /api/scraper/config/parameters", Status: 200,
		Has: map[string]any{"maxUploadBytes": map[string]any{"csv": 200_000_000,
			"jsonl": 200_000_000, "xlsx": 36_000_000},
			"maxColumns": 500, "maxJsonUploads": 8, "maxRowBytes": 1_000_000,
			"maxUploadSeconds": 3600}})
}

package scrapers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func TestDelete(t *testing.T) {
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)))
	group := s.NewGroup(t, "alice", "g")
	made := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("1"),
		Body: body(group)})
	id, err := ids.Parse(made.Text("id"))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, s, id, 3)
	path := "/api/scraper/" + id.String()
	preview, remove := "POST "+path+"/preview-delete", "DELETE "+path
	none := "/api/scraper/0123456789abcdef01234567"
	s.Run(t,
		apitest.Scenario{Name: "reader", As: apitest.Reader, Do: preview, Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: preview, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "unknown", As: apitest.User, Do: "POST " + none + "/preview-delete",
			Status: 404, Code: "scraper_not_found"},
		apitest.Scenario{Name: "with data", As: apitest.User, Do: preview + "?withData=true",
			Status: 200, Has: map[string]any{"previewSummary.cascadeCounts.rows": 0}},
		apitest.Scenario{Name: "no preview", As: apitest.User, Do: remove, Header: key("2"),
			Status: 409, Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "preview", As: apitest.User, Do: preview, Status: 200,
			Has: map[string]any{"opName": client.OpDeleteScraper,
				"previewSummary.entityType": "SCRAPER"}},
	)
	deliver(t, s, id, 1)
	s.Run(t,
		apitest.Scenario{Name: "it ran meanwhile", As: apitest.User, Do: remove, Header: key("3"),
			Status: 409, Code: "CASCADE_COUNT_DRIFT"},
		apitest.Scenario{Name: "preview again", As: apitest.User, Do: preview, Status: 200},
	)
	run := client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice", Scraper: id,
		List: s.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	s.Client.Must(t, run)
	s.Client.Must(t, client.PutSite{Customer: "alice", Scraper: id, ID: s.IDs.New(),
		Version: s.IDs.New(), Name: "s", Links: 40})
	s.Run(t, apitest.Scenario{Name: "its site goes", As: apitest.User, Do: preview, Status: 200,
		Has: map[string]any{"previewSummary.warnings": []any{"This cannot be undone.",
			"Its runs leave the history, unless deleted ones are asked for.",
			"Its rows stay in the group.", "This deletes 1 site with 40 links.",
			"This stops 1 run under way."}}})
	token := s.Call(t, apitest.Scenario{As: apitest.User, Do: preview, Status: 200,
		Has: map[string]any{"previewSummary.cascadeCounts": map[string]any{"openRuns": 1,
			"sites": 1, "siteLinks": 40}}}).
		Text("token")
	s.Run(t,
		apitest.Scenario{Name: "delete", As: apitest.User, Do: remove + "?token=" + token,
			Header: key("4"), Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.User,
			Do: remove + "?token=" + token, Header: key("4"), Status: 204},
		apitest.Scenario{Name: "it is gone", As: apitest.User, Do: "GET " + path, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "its runs are deleted ones", As: apitest.User,
			Do: "GET /api/scraper/load-history", Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "its runs stay", As: apitest.User,
			Do: "GET /api/scraper/load-history?withDeleted=true", Status: 200,
			Has: map[string]any{"totalElements": 3}},
		apitest.Scenario{Name: "its name is free", As: apitest.User, Do: put, Header: key("5"),
			Body: body(group), Status: 200},
	)
}

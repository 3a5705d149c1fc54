package runs_test

import (
	"fmt"
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func withEngines(config *apiserver.Config) {
	config.SearchEngines = []model.SearchEngine{{Name: "first",
		URL: "https://search.test/search?q={query}&format=json", PageParam: "pageno",
		IgnoreRobots: true},
		{Name: "second", URL: "https://other.test/?q={query}"}}
}

func startSearch(t *testing.T, options ...apitest.Option) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, append(options, apitest.WithStore(r.store))...)
	r.group = r.NewGroup(t, "alice", "g")
	return r
}

func (r *rig) newSearch(t *testing.T, name, source string) string {
	t.Helper()
	made := r.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper", Header: key(name),
		Body: fmt.Sprintf(`{"name":%q,"groupRef":%q,"type":"SEARCH_ENGINE_SEARCH","sourceConfig":%s}`, name, r.group, source)})
	if made.Status != 200 {
		t.Fatalf("%s", made.Body)
	}
	return made.Text("id")
}

// Each query becomes an address of the engine, which stays the run's engine.
func TestSearch(t *testing.T) {
	r := startSearch(t, withEngines)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	id := r.newSearch(t, "searches",
		`{"queries":["oak chair","a&b"],"pagination":{"type":"URL_PAGE_PARAM","max":3}}`)
	wait := r.loop(t, delivered(`{"position":1,"title":"a"}`))
	r.Run(t, apitest.Scenario{Name: "sample", As: apitest.User,
		Do: "GET /api/scraper/" + id + "/get-sample-data", Status: 200,
		Has: map[string]any{"0.title": "a"}})
	if urls := r.urls(t, wait().ID.String()); !slices.Equal(urls,
		[]string{"https://search.test/search?q=oak+chair&format=json"}) {
		t.Errorf("the sample is of %q", urls)
	}
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "GET /api/scraper/" + id + "/run"})
	want := []string{"https://search.test/search?q=oak+chair&format=json",
		"https://search.test/search?q=a%26b&format=json"}
	if urls := r.urls(t, run.Text("jobId")); !slices.Equal(urls, want) {
		t.Errorf("the run is of %q: %s", urls, run.Body)
	}
	jobID, err := ids.Parse(run.Text("jobId"))
	if err != nil {
		t.Fatal(err)
	}
	job := r.Client.View().Job(jobID)
	recipe := r.Client.View().Recipe(job.Scraper, job.Revision)
	if recipe == nil || recipe.Recipe.Search == nil || recipe.Recipe.Search.Name != "first" ||
		recipe.Recipe.Pagination.Param != "pageno" ||
		job.MaxPages != 3 || !job.IgnoresRobots {
		t.Errorf("job %+v, recipe %+v", job, recipe)
	}
	second := r.newSearch(t, "second",
		`{"queries":["x"],"engine":"second","pagination":{"type":"URL_PAGE_PARAM","max":3}}`)
	run = r.Call(t, apitest.Scenario{As: apitest.User, Do: "GET /api/scraper/" + second + "/run"})
	if urls := r.urls(t, run.Text("jobId")); !slices.Equal(urls,
		[]string{"https://other.test/?q=x"}) {
		t.Errorf("the run is of %q: %s", urls, run.Body)
	}
	unknown := r.newSearch(t, "unknown", `{"queries":["x"],"engine":"third"}`)
	r.Run(t,
		apitest.Scenario{Name: "unknown engine", As: apitest.User,
			Do: "GET /api/scraper/" + unknown + "/run", Status: 400,
			Code: "search_engine_not_configured"},
		apitest.Scenario{Name: "valid", As: apitest.User, Do: "GET /api/scraper/v2/" + id,
			Status: 200, Has: map[string]any{"configValid": true}},
	)
}

func TestSearchWithoutEngine(t *testing.T) {
	r := startSearch(t)
	id := r.newSearch(t, "searches", `{"queries":["oak chair"]}`)
	for _, operation := range []string{"run", "get-sample-data"} {
		r.Run(t, apitest.Scenario{Name: operation, As: apitest.User,
			Do: "GET /api/scraper/" + id + "/" + operation, Status: 400,
			Code: "search_engine_not_configured",
			Has:  map[string]any{"errors.0.field": "sourceConfig.engine"}})
	}
	r.nothingLeft(t)
}

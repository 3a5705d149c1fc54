package runs_test

import (
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// startKeeping starts a rig with a store for bodies.
func startKeeping(t *testing.T) *rig {
	t.Helper()
	blobs, err := blobstore.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, apitest.WithStore(r.store),
		func(config *apiserver.Config) { config.Blobs = blobs })
	r.group = r.NewGroup(t, "alice", "g")
	return r
}

// TestReExtract: an ended run is read again, by the scraper or with replacements, and the scraper
// stays as it is.
func TestReExtract(t *testing.T) {
	r := startKeeping(t)
	scraper, other := r.newScraper(t, "shop", "https://shop.test/"),
		r.newScraper(t, "other", "https://shop.test/o")
	launch := func(scraper ids.ID) string {
		t.Helper()
		run := r.Call(t, apitest.Scenario{As: apitest.User,
			Do: "POST /api/scraper/" + scraper.String() + "/run"})
		return run.Text("jobId")
	}
	job, foreign := launch(scraper), launch(other)
	r.finish(t, foreign, 1, 0)
	path := "POST /api/scraper/" + scraper.String() + "/re-extract"
	refused := func(name, as, do, body, code, field string, status int) {
		t.Helper()
		has := map[string]any{}
		if field != "" {
			has["errors.0.field"] = field
		}
		r.Run(t, apitest.Scenario{Name: name, As: as, Do: do, Body: body, Status: status,
			Code: code, Has: has})
	}
	of := func(job string) string { return `{"jobId":"` + job + `"}` }
	refused("still running", apitest.User, path, of(job), "scraper_already_running", "jobId", 400)
	r.finish(t, job, 1, 0)
	const unknown = "0123456789abcdef01234567"
	refused("no job", apitest.User, path, `{}`, "schema_validation_failed", "jobId", 400)
	refused("unknown job", apitest.User, path, of(unknown), "job_not_found", "jobId", 400)
	refused("another's run", apitest.User, path, of(foreign), "job_not_found", "jobId", 400)
	refused("unknown scraper", apitest.User, "POST /api/scraper/"+unknown+"/re-extract", of(job),
		"scraper_not_found", "id", 404)
	refused("foreign", apitest.Other, path, of(job), "scraper_not_found", "id", 404)
	refused("read key", apitest.Reader, path, of(job), "scope_rejected", "", 403)
	with := func(members string) string { return `{"jobId":"` + job + `",` + members + `}` }
	refused("bad selector", apitest.User, path,
		with(`"itemsConfig":[{"name":"a","selector":"h1[","kind":"TEXT"}]`),
		"schema_validation_failed", "itemsConfig[0].selector", 400)
	refused("selector in vain", apitest.User, path,
		with(`"itemsConfig":[{"name":"a","selector":"//comment()","kind":"TEXT"}]`),
		"schema_validation_failed", "itemsConfig[0].selector", 400)
	refused("bad rule", apitest.User, path, with(`"postProcessRules":[{"kind":"REGEX_CLEAN",`+
		`"sourceField":"a","outputField":"b"}]`), "schema_validation_failed",
		"postProcessRules[0].params.pattern", 400)
	refused("no such schema", apitest.User, path, with(`"type":"AI_CONF","schema":{"id":"`+
		unknown+`"}`), "schema_missing", "schema.id", 400)
	refused("another type", apitest.User, path, with(`"type":"FILE"`),
		"schema_validation_failed", "type", 400)
	call := apitest.Scenario{As: apitest.User, Do: path, Header: key("k"),
		Body: with(`"itemsConfig":[{"name":"a","selector":"b","kind":"TEXT"}]`)}
	made := r.Call(t, call)
	id, err := ids.Parse(made.Text("jobId"))
	if made.Status != 200 || err != nil || made.Text("status") != "RUNNING" {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	if again := r.Call(t, call); again.Text("jobId") != id.String() {
		t.Errorf("the same call makes %s", again.Body)
	}
	view := r.Client.View()
	recipe := view.Recipe(id, 1)
	known := view.Import(id)
	if recipe == nil || recipe.Recipe.Fields[0].Selector != "b" || known == nil ||
		known.From.String() != job || view.Job(id).Links != 1 || view.WorkItem(id) == nil ||
		view.Scraper(scraper).Spec.ItemsConfig[0].Selector != "h1" {
		t.Errorf("recipe %+v, %+v", recipe, known)
	}
	refused("already running", apitest.User, path, of(job), "scraper_already_running", "", 400)
	r.Run(t, apitest.Scenario{Name: "stop", As: apitest.User,
		Do: "POST /api/scraper/" + scraper.String() + "/stop", Header: key("s"), Status: 200})
	if j := r.Client.View().Job(id); j.State != model.Stopped {
		t.Errorf("%+v", j)
	}
	refused("of one that was stopped", apitest.User, path, of(id.String()), "job_not_found",
		"jobId", 400)
}

// TestReExtractWithoutAPlace: without a store for bodies there is nothing to read.
func TestReExtractWithoutAPlace(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	r.Run(t, apitest.Scenario{Name: "refused", As: apitest.User,
		Do: "POST /api/scraper/" + id + "/re-extract", Status: 404, Code: "body_not_kept",
		Body: `{"jobId":"0123456789abcdef01234567"}`})
}

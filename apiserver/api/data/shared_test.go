package data_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// share shares the group with bob, who has no other group.
func (r *rig) share(t *testing.T) {
	t.Helper()
	r.Client.Must(t, client.SignUp{Customer: "bob", Email: "bob@x.test"})
	r.Client.Must(t, client.ShareGroup{Customer: "alice", Group: r.group,
		Emails: []string{"bob@x.test"}})
}

// A reader of a shared group gets the same bytes as the owner, until the share is revoked.
func TestReadsOfASharedGroup(t *testing.T) { onStores(t, readSharedGroup) }

func readSharedGroup(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.save(t, "low", `{"n":{"lt":3}}`)
	group := r.group.String()
	var paths []string
	for _, query := range []string{"", "?isLastRun=true", "?categories=low",
		"?scraperId=" + r.shop.String(), "?isLastRun=true&scraperId=" + r.other.String()} {
		paths = append(paths, "/api/scraper/data/group/"+group+query,
			"/api/scraper/data/group/"+group+"/client"+query)
	}
	for _, query := range []string{"groupId=" + group, "scraperId=" + r.shop.String(),
		"jobId=" + r.jobs[1].String(), "isLastRun=true&groupId=" + group,
		"isLastRun=true&scraperId=" + r.shop.String(), "categories=low&groupId=" + group} {
		paths = append(paths, "/api/scraper/data?"+query,
			"/api/scraper/data/export?format=csv&"+query)
	}
	paths = append(paths, "/api/scraper/data/diff?from="+r.jobs[0].String()+"&to="+
		r.jobs[2].String(), "/api/scraper/data/group/"+group+"/download?format=csv&categories=low",
		"/api/scraper/data/group/"+group+"/download?format=jsonl",
		"/api/scraper/data/group/"+group+"/categories")
	read := func(as, path string, status int) apitest.Answer {
		t.Helper()
		a := r.Call(t, apitest.Scenario{As: as, Do: "GET " + path})
		if a.Status != status {
			t.Errorf("%s of %s: %d, want %d: %s", path, as, a.Status, status, a.Body)
		}
		return a
	}
	r.share(t)
	for _, path := range paths {
		own, shared := read(apitest.User, path, 200), read(apitest.Other, path, 200)
		if string(own.Body) != string(shared.Body) || len(own.Body) == 0 {
			t.Errorf("%s: the owner reads %s, the other %s", path, own.Body, shared.Body)
		}
	}
	r.Client.Must(t, client.RevokeShare{Customer: "alice", Group: r.group, Email: "bob@x.test"})
	for _, path := range paths {
		if a := r.Call(t, apitest.Scenario{As: apitest.Other, Do: "GET " +
			path}); a.Status != 400 && a.Status != 404 {
			t.Errorf("%s after it was revoked: %d", path, a.Status)
		}
	}
}

// Naming a scraper does not show its rows in a group that is not shared.
func TestSharedScraperThatWasMoved(t *testing.T) { onStores(t, readMovedShared) }

func readMovedShared(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	before := r.group
	r.group = r.NewGroup(t, "alice", "new")
	r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}})
	r.run(t, r.shop, `{"n":9}`)
	r.share(t)
	for _, query := range []string{"", "&groupId=" + r.group.String()} {
		a := r.Call(t, apitest.Scenario{As: apitest.Other, Status: 200,
			Do: readPath + "?scraperId=" + r.shop.String() + query})
		if got := numbers(a, "items"); got != "9" {
			t.Errorf("%s: the other reads %s", query, got)
		}
	}
	a := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: readPath + "?scraperId=" + r.shop.String()})
	if got := numbers(a, "items"); got != "1236789" {
		t.Errorf("the owner reads %s", got)
	}
	for _, query := range []string{"jobId=" + r.jobs[0].String(), "groupId=" + before.String(),
		"scraperId=" + r.other.String(),
		"groupId=" + before.String() + "&scraperId=" + r.shop.String()} {
		a := r.Call(t, apitest.Scenario{As: apitest.Other, Do: readPath + "?" + query})
		if a.Status < 400 || strings.Contains(string(a.Body), `"n"`) {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
}

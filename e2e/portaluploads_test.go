package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// walks goes to another place of the portal without reloading the page.
func (v *visit) walks(path string) {
	v.person.t.Helper()
	asks[bool](v.person, fmt.Sprintf(`(history.pushState(null, "", "/portal%s"),
		dispatchEvent(new PopStateEvent("popstate")))`, path))
}

// TestPortalSendsFilesWhereTheyBelong: a file meant to replace one of a group no longer does so
// once another group is chosen. Its upload continues while the person moves through the portal.
func TestPortalSendsFilesWhereTheyBelong(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	first := suite.Must(v.PutGroup(ctx, "First"))(t)
	second := suite.Must(v.PutGroup(ctx, "Second"))(t)
	answer, err := v.Do(ctx, "POST", "/api/scraper/group/"+first+"/file-scraper",
		url.Values{"format": {"csv"}, "name": {"of the first"}}, "text/csv",
		strings.NewReader("title\nlamp\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(file, []byte("title\nchair\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	v.before(breaking)
	v.goes("/uploads", `document.querySelector("#file")`)
	v.chooses("group", first)
	v.chooses("target", asks[string](v.person, `document.querySelectorAll("#target option")[1].value`))
	v.sees(`!document.querySelector("#upload-name")`)
	v.chooses("group", second)
	v.sees(`!document.querySelector("#target") && document.querySelector("#upload-name")`)
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.breaks(true)
	v.presses("Send the file")
	v.says("The connection broke.")

	v.walks("/runs")
	v.walks("/groups")
	v.walks("/uploads")
	v.says("The connection broke.")
	v.says("other.csv")
	if asks[bool](v.person, `document.querySelector("main").innerText.includes("on its way when")`) {
		t.Error("a file that is on its way is said to be left")
	}
	v.walks("/groups")
	v.breaks(false)
	asks[bool](v.person, `(dispatchEvent(new Event("online")), true)`)
	v.sees(`sessionStorage.getItem("shoal-upload") === null`)
	v.walks("/uploads")
	v.says("The file was accepted.")
	var list struct {
		Items []struct{ Name, GroupRef string }
	}
	if err := v.Call(ctx, "GET", "/api/scraper/list", nil, nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Items {
		if want := map[string]string{"of the first": first, "other": second}[one.Name]; one.
			GroupRef != want {
			t.Errorf("%+v is not of the group %q", one, want)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("the scrapers are %+v, want 2", list.Items)
	}
	v.ends()
}

// TestPortalAsksForTheColumn: files of a scraper may add to each other by a column that nobody can
// guess. The portal asks for it, and sends the file with a column that the stored rows have.
func TestPortalAsksForTheColumn(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := suite.Within(t, suite.Patience)
	var group struct{ ID string }
	if err := v.Call(ctx, "PUT", "/api/scraper/group", nil, map[string]any{"name": "Lamps",
		"startType": "MANUAL", "shouldMatchProducts": true}, &group); err != nil {
		t.Fatal(err)
	}
	sends := func(to suite.Client, method, path string, query url.Values, file string) (
		sent uploadedFile) {
		t.Helper()
		answer, err := to.Do(ctx, method, path, query, "text/csv", strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(&sent)
		if closed := answer.Body.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		return sent
	}
	stored := sends(v.Client, "POST", "/api/scraper/group/"+group.ID+"/file-scraper",
		url.Values{"format": {"csv"}, "name": {"lamps"}}, "place,colour\nhall,red\n")
	if _, err := v.Follow(ctx, stored.JobID, nil); err != nil {
		t.Fatal(err)
	}
	sends(v.Admin(), "PUT", "/api/admin/catalogue", url.Values{"format": {"csv"}},
		"id,gtin,title\np1,4000000000013,a lamp\n")
	var status struct{ Current *struct{ Products int } }
	for status.Current == nil {
		if err := v.Admin().Call(ctx, "GET", "/api/admin/catalogue/status", nil, nil,
			&status); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Call(ctx, "PUT", "/api/scraper/group/"+group.ID+"/match", nil, nil,
		nil); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "more.csv")
	if err := os.WriteFile(file, []byte("place,colour\nhall,blue\nstairs,blue\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	v.goes("/uploads", `document.querySelector("#target")`)
	v.chooses("target", stored.Scraper.ID)
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	v.presses("Send the file")
	v.says("Column that tells rows apart is required")
	v.sees(`document.activeElement.id === "upload-column"`)
	v.enters("upload-column", "room")
	v.presses("Send the file")
	v.says("Enter a column of the rows that are stored")
	v.enters("upload-column", "place")
	v.presses("Send the file")
	v.says("The file was accepted.")
	v.sees(`!document.querySelector("#upload-column")`)
	job := asks[string](v.person, `document.querySelector(".note a").href.split("/").at(-1)`)
	if _, err := v.Follow(ctx, job, nil); err != nil {
		t.Fatal(err)
	}
	v.goes("/rows/"+group.ID, `document.querySelector(".rows table").ariaRowCount === "3"`)
	v.ends()
}

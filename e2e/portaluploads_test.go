package e2e

import (
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

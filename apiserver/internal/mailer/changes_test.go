package mailer_test

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// A notice of changes has a line for each example. Text of pages in it is text, not markup.
func TestEachChangeHasALine(t *testing.T) {
	for count := 1; count < 3; count++ {
		p := newPost(t, mailer.InClear)
		scraper, group := p.ids.New(), p.ids.New()
		p.client.Must(t, client.PutGroup{Create: true, ID: group, Customer: "ann", Name: "g",
			Alerts: &client.Alerts{On: []string{"ADDED"}}})
		p.client.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "ann",
			Group: group, Spec: model.Scraper{Name: "Shop", Type: model.File}})
		for range count {
			upload := client.BeginImport{Job: p.ids.New(), Customer: "ann", Scraper: scraper,
				Format: "csv", Bytes: 7}
			p.client.Must(t, upload)
			p.client.Must(t, client.EndImport{Job: upload.Job, Items: 2})
			p.client.Must(t, client.TellChanges{Customer: "ann", Job: upload.Job,
				Scraper: scraper, Changes: client.RunChanges{Added: 2, Examples: []string{
					`added sku "<b>a</b>"`, `added sku "b"`}}})
		}
		p.clock.Advance(time.Hour)
		p.must()
		mails := p.mails()
		if len(mails) == 0 {
			t.Fatal("no e-mail")
		}
		_, plain, html := parse(t, mails[len(mails)-1])
		plain = strings.ReplaceAll(plain, "\r\n", "\n")
		between := "\n"
		if count > 1 {
			between = "\n  " // of a list item
		}
		if wanted := between + `added sku "<b>a</b>"` + between + `added sku "b"` + between +
			"All: /api/scraper/data/diff?from="; !strings.Contains(plain, wanted) {
			t.Errorf("%d notices: %s", count, plain)
		}
		if strings.Contains(html, "<b>") || !strings.Contains(html, "pre-line") {
			t.Errorf("%d notices: %s", count, html)
		}
	}
}

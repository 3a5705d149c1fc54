package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"shoal.dev/shoal/bench/contacts"
	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Contacts judges the e-mail addresses read from saved real pages.
type Contacts struct {
	Pages string `help:"Directory with the pages, under OWNER/NAME/PATH." required:"" placeholder:"DIR" type:"existingdir"`
	Half  string `help:"Half of the corpus: tune, or held, whose runs are noted in HELD.md." enum:"tune,held" default:"tune"`
}

// Help returns the help text.
func (*Contacts) Help() string {
	return `Each page is read as the home page of a website without other pages. The corpus is a list of public sources with hashes of
the addresses that a careful person would note down. bench/contacts/README.md describes how to gather its pages. The
halves have no site in common. With less than 90% of a half's pages nothing is judged.

A false alarm is a page that was reported to protect its address although it does not.

Example: shoal bench contacts --pages pages`
}

// Bounds of the judgement.
const (
	rightAddresses = 0.99 // of the answered addresses
	foundAddresses = 0.9  // of the published addresses
)

// Measure reads a half of the pages.
func (m *Contacts) Measure(ctx context.Context, on *Bench, report *Report) error {
	entries, err := contacts.Corpus()
	if err != nil {
		return err
	}
	reader, err := extract.Compile(model.Recipe{Endpoint: model.WebsiteContacts})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var pages, published, right, wrong, missed, alarms, unnoticed float64
	err = readHalf(ctx, on, "contacts", m.Pages, saved.Half(m.Half), entries,
		func(e *contacts.Entry) *saved.Source { return &e.Source },
		func(e *contacts.Entry, body []byte) {
			answer := readContacts(reader, &e.Source, body)
			got := e.Judge(answer.addresses(), answer.Status == "EMAIL_NOT_EXTRACTABLE")
			pages++
			published += one(len(e.Own) > 0)
			right += float64(got.Right)
			wrong += float64(got.Wrong)
			missed += float64(got.Missed)
			alarms += one(got.Alarm)
			unnoticed += one(got.Unnoticed)
			report.note("%s, %s: %s, %+v", e.Site, e.Path, answer.Status, got)
		})
	if err != nil {
		return err
	}
	table := report.table("Website contacts:", "half", "pages", "with an address", "precision, %",
		"recall, %", "false alarms", "unnoticed protections")
	precise, recalled := percent(right, right+wrong), percent(right, right+missed)
	table.add(m.Half, pages, published, precise, recalled, alarms, unnoticed)
	report.atMost("answered addresses that are wrong", 100-precise, 100*(1-rightAddresses), "%")
	report.atMost("published addresses that are missed", 100-recalled, 100*(1-foundAddresses), "%")
	return nil
}

// contactRow is the relevant part of a website's row.
type contactRow struct {
	Emails string `json:"emails_all"`
	Status string `json:"status"`
}

func (r *contactRow) addresses() []string {
	if r.Emails == "" {
		return nil
	}
	return strings.Split(r.Emails, "; ")
}

// readContacts reads a page as the home page of a website without other pages. An unreadable page
// has no status.
func readContacts(reader *extract.Extractor, source *saved.Source, body []byte) contactRow {
	var row contactRow
	body, err := inUTF8(body, source.ContentType())
	if err != nil {
		return row
	}
	pages := []extract.Page{{URL: source.Address, Asked: source.Address,
		ContentType: source.ContentType(), Body: body}}
	got, err := reader.Extract(pages...)
	for err == nil && got.Ask != nil {
		last := &pages[len(pages)-1]
		last.Kept, last.Body = got.Ask.Keep, nil
		pages = append(pages, extract.Page{URL: got.Ask.URL, Asked: got.Ask.URL,
			Code: fault.PageStatus, Missing: true})
		got, err = reader.Extract(pages...)
	}
	if err != nil || len(got.Rows) != 1 || json.Unmarshal(got.Rows[0], &row) != nil {
		return contactRow{}
	}
	return row
}

package customers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// runOf makes a closed run of a customer's scraper. Its list has one address for each row, and one
// more that was not found.
func runOf(t *testing.T, s *apitest.Server, store rowstore.Store, customer string,
	scraper ids.ID, rows int) {
	t.Helper()
	s.Clock.Advance(time.Second)
	run := client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: customer,
		Scraper: scraper, List: s.IDs.New(), Links: uint32(rows + 1),
		Tiers: model.TiersOf(model.Plain)}
	list, err := store.CreateList(t.Context(), run.List)
	if err != nil {
		t.Fatal(err)
	}
	var pages []rowstore.PageWrite
	of := rowstore.Job{ID: run.Job, Customer: customer, Scraper: scraper, Started: 1,
		Group: s.Client.View().Scraper(scraper).Group}
	for seq := range rows + 1 {
		url := fmt.Sprintf("https://shop.test/%s/%d", customer, seq)
		if _, err := list.Add(t.Context(), url, url); err != nil {
			t.Fatal(err)
		}
		page := &model.Page{Job: run.Job, Unit: model.Unit{Seq: uint32(seq)},
			Fetch: s.IDs.New(), URL: url, Last: true}
		if seq < rows {
			page.Quantity, page.Outcome, page.PriceRow = 1, model.Delivered, "tier:plain"
			page.Rows = [][]byte{fmt.Appendf(nil, `{"of":%q,"text":"<b>%d</b>"}`, customer, seq)}
		} else {
			page.Outcome, page.Code, page.Status = model.Errored, "http_status", 404
		}
		pages = append(pages, rowstore.PageWrite{Job: of, Page: page})
	}
	if _, err := list.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Client.Must(t, run)
	receipts, err := store.PutPages(t.Context(), pages)
	if err != nil {
		t.Fatal(err)
	}
	for seq, receipt := range receipts {
		s.Client.Dispatch(t, run.Job, uint32(seq))
		if err := s.Client.Settle(t.Context(), []model.Receipt{*receipt}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Client.CloseRun(t, run.Job)
}

func scraperOf(t *testing.T, s *apitest.Server, customer, name string, group ids.ID) ids.ID {
	t.Helper()
	put := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: customer, Group: group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct}}
	s.Client.Must(t, put)
	return put.ID
}

// siteOf gives a customer's scraper a site of two links.
func siteOf(t *testing.T, s *apitest.Server, store rowstore.Store, customer string,
	scraper ids.ID) {
	t.Helper()
	put := client.PutSite{ID: s.IDs.New(), Customer: customer, Scraper: scraper,
		Name: "site of " + customer, Version: s.IDs.New(), Links: 2}
	links := make([]rowstore.SiteLink, put.Links)
	for seq := range links {
		links[seq] = rowstore.SiteLink{Seq: uint32(seq),
			URL: fmt.Sprintf("https://shop.test/%s/of/a/site/%d", customer, seq)}
	}
	if err := errors.Join(store.PutSiteLinks(t.Context(), put.Version, links),
		store.FinishSite(t.Context(), put.Version, put.Links)); err != nil {
		t.Fatal(err)
	}
	s.Client.Must(t, put)
}

// statedKinds lists the kinds that the architecture names for an export of the state's tables.
func statedKinds(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.Contains(cells[1], "`") {
			for kind := range strings.SplitSeq(cells[5], ",") {
				kinds[strings.TrimSpace(kind)] = true
			}
		}
	}
	delete(kinds, "–")
	return slices.Sorted(maps.Keys(kinds))
}

// keyPrefix is random, so it may have any word.
var keyPrefix = regexp.MustCompile(`"prefix":"[a-z2-7]{7}",`)

// An export has everything of the customer and nothing of others, whatever has left the state. It
// includes the rows of a deleted scraper, but no deleted rows.
func TestExport(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	for i, customer := range []string{"alice", "bob"} {
		account, session := s.IDs.New(), client.Hash{byte(i + 1)}
		s.Client.Must(t, client.CreateAccount{ID: account, Customer: customer,
			Email: customer + "@x.test", Password: "hash"})
		s.Client.Must(t, client.AddPasskey{ID: s.IDs.New(), Account: account, Password: "hash",
			Name: "laptop of " + customer, Credential: []byte(customer)})
		s.Client.Must(t, client.OpenSession{Account: account, Password: "hash", Hash: session})
		s.Client.Must(t, client.IssueCode{Session: session, Hash: session,
			Scope: model.ScopeLLMRead, Name: "program of " + customer})
		s.Client.Must(t, client.RedeemCode{Hash: session, Grant: s.IDs.New(), Family: session,
			Refresh: session, Access: session})
		s.Client.Must(t, client.ChooseFree{Customer: customer})
		s.Client.Must(t, client.PutInvoice{Invoice: client.Invoice{ID: "of " + customer,
			Customer: customer, Currency: "eur"}})
		s.Client.Must(t, client.GiveFeedback{ID: s.IDs.New(), Customer: customer,
			Text: "from " + customer})
		s.Client.Must(t, client.AdjustWallet{Customer: customer, Entry: s.IDs.New(),
			Amount: 1_000_000})
		s.Client.Must(t, client.PutWebhook{ID: s.IDs.New(), Customer: customer,
			URL: "https://hook.test/" + customer, Secret: []byte("s"),
			Events: []model.Event{model.RunFailed}})
		kept := s.NewGroup(t, customer, "kept")
		s.Client.Must(t, client.PutCategory{ID: s.IDs.New(), Customer: customer, Group: kept,
			Name: "cheap", Filters: []byte(`{"price":{"lt":9}}`)})
		s.Client.Must(t, client.ShareGroup{Customer: customer, Group: kept,
			Emails: []string{"friend.of." + customer + "@y.test"}})
		s.Client.Must(t, client.PutSchema{ID: s.IDs.New(), Customer: customer, Version: 1,
			Name: "of " + customer, Content: []byte(`{}`)})
		shop := scraperOf(t, s, customer, "shop", kept)
		siteOf(t, s, store, customer, shop)
		gone := scraperOf(t, s, customer, "gone", kept)
		for range 3 {
			runOf(t, s, store, customer, shop, 2)
		}
		runOf(t, s, store, customer, gone, 4)
		remove := func(operation string, target ids.ID, query string,
			commit func(client.Deletion)) {
			d := client.Deletion{Customer: customer, Operation: operation, Target: target,
				Query: query}
			s.Client.Must(t, client.PreviewDelete{Deletion: d, Token: "t"})
			commit(d)
		}
		remove(client.OpDeleteScraper, gone, "", func(d client.Deletion) {
			s.Client.Must(t, client.DeleteScraper{Deletion: d, Token: "t"})
		})
		for name, query := range map[string]string{"rows stay": "", "rows go": client.WithData} {
			group := s.NewGroup(t, customer, name)
			runOf(t, s, store, customer, scraperOf(t, s, customer, name, group), 5)
			remove(client.OpDeleteGroup, group, query, func(d client.Deletion) {
				s.Client.Must(t, client.DeleteGroup{Deletion: d, Token: "t"})
			})
		}
	}
	s.Client.Archive(t, store, 1)
	var answer apitest.Answer
	s.Run(t, apitest.Scenario{Name: "nobody", Do: "GET /api/customer/export", Status: 401,
		Code: "unauthorized"}, apitest.Scenario{Name: "file", As: apitest.Reader,
		Do: "GET /api/customer/export", Status: 200,
		Headers: map[string]string{"Content-Type": "application/x-ndjson",
			"Content-Disposition": `attachment; filename="customer.jsonl"`},
		Check: func(_ *testing.T, a apitest.Answer) { answer = a }})
	var kinds []string
	counts := map[string]int{}
	for text := range strings.Lines(string(answer.Body)) {
		var line struct {
			Kind  string
			Value json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if counts[line.Kind]++; counts[line.Kind] == 1 {
			kinds = append(kinds, line.Kind)
		}
		text = keyPrefix.ReplaceAllString(text, "")
		if strings.Contains(text, "bob") || strings.Contains(text, "hash") ||
			strings.Contains(text, "secret") {
			t.Errorf("it has %s", text)
		}
		if line.Kind == "linkError" && !strings.Contains(text, `"status":404`) {
			t.Errorf("an error is %s", text)
		}
		if line.Kind == "row" && !strings.Contains(text, `"text":"<b>`) {
			t.Errorf("a row is %s", text)
		}
	}
	want := []string{"profile", "additionalInfo", "notificationPreferences", "account",
		"passkey", "grant", "wallet", "subscription", "invoice", "key", "webhook", "group",
		"category", "share", "schema", "scraper", "site", "siteLink", "notification", "feedback",
		"transaction", "run", "link", "linkError", "row"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("the kinds (-want +got):\n%s", diff)
	}
	slices.Sort(kinds)
	if diff := cmp.Diff(statedKinds(t), kinds); diff != "" {
		t.Errorf("the kinds that the architecture says (-want +got):\n%s", diff)
	}
	keys := len(s.Client.View().Keys("alice"))
	notices := 0
	s.Client.View().Notices("alice", func(*client.Notice) bool { notices++; return true })
	for kind, n := range map[string]int{"profile": 1, "wallet": 1, "key": keys, "group": 1,
		"category": 1, "share": 1, "schema": 1, "site": 1, "siteLink": 2, "subscription": 1,
		"invoice": 1, "webhook": 1, "scraper": 1, "notification": notices, "feedback": 1,
		"run": 6, "link": 3*2 + 4 + 2*5 + 6,
		"account": 1, "passkey": 1, "grant": 1, "linkError": 6,
		"row": 3*2 + 4 + 5, "transaction": 2 + 6} { // the grant, and what was added
		if counts[kind] != n {
			t.Errorf("%d lines of the kind %s, want %d", counts[kind], kind, n)
		}
	}
}

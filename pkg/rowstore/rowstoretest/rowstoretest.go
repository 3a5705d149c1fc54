// Package rowstoretest is the conformance suite of row stores: the promises of package rowstore, as
// tests that every implementation runs. It owns no store and knows none.
package rowstoretest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// RunCore runs a few tests of the suite that write to and read from every table.
func RunCore(t *testing.T, open func(t *testing.T) rowstore.Store) {
	run(t, open, "Lists", "FirstRecordWins", "Record", "Records", "Seal", "DeleteJob", "Recount",
		"LinkErrors", "NewestFirst", "Refused", "WhateverAPageHolds", "Sites", "LinkStates")
}

// Run runs the suite. Each call of open returns an empty store, which the test closes.
func Run(t *testing.T, open func(t *testing.T) rowstore.Store) { run(t, open) }

// run runs the tests with these names, or all tests.
func run(t *testing.T, open func(t *testing.T) rowstore.Store, only ...string) {
	for _, test := range []struct {
		name string
		run  func(s *suite)
	}{
		{"Claim", testClaim},
		{"Lists", testLists},
		{"ListsOfAllSizes", testListSizes},
		{"ListDedupe", testListDedupe},
		{"ListLifecycle", testListLifecycle},
		{"ListsAtOnce", testListsAtOnce},
		{"FirstRecordWins", testFirstRecordWins},
		{"SameUnitTwiceInABatch", testSameUnitInBatch},
		{"OwnScraper", testOwnScraper},
		{"ManyPages", testManyPages},
		{"Duplicates", testDuplicates},
		{"BehindTheEnd", testBehindTheEnd},
		{"Cancelled", testCancelled},
		{"Refused", testRefused},
		{"WhateverAPageHolds", testWhateverAPageHolds},
		{"Record", testRecord},
		{"Records", testRecords},
		{"Seal", testSeal},
		{"SealUnknown", testSealUnknown},
		{"SealWhilePagesCome", testSealRace},
		{"DeleteJob", testDeleteJob},
		{"JobsSince", testJobsSince},
		{"Expire", testExpire},
		{"KeepCharged", testKeepCharged},
		{"Holding", testHolding},
		{"Erase", testErase},
		{"PagesModel", testPagesModel},
		{"Recount", testRecount},
		{"LinkErrors", testLinkErrors},
		{"ReadsOfUnknown", testUnknown},
		{"Documents", testDocuments},
		{"Scopes", testScopes},
		{"ManyJobs", testManyJobs},
		{"CountUpto", testCountUpto},
		{"FilterOperators", testFilterOperators},
		{"FilterFields", testFilterFields},
		{"FilterTrees", testFilterTrees},
		{"FilterLimits", testFilterLimits},
		{"FilterJoined", testFilterJoined},
		{"NewestFirst", testNewestFirst},
		{"Sort", testSort},
		{"RowsBytes", testRowsBytes},
		{"Order", testOrder},
		{"OrderWhilePagesCome", testOrderRace},
		{"OrderAnywhere", testOrderAnywhere},
		{"At", testAt},
		{"Scan", testScan},
		{"ScanBytes", testScanBytes},
		{"ScanAnywhere", testScanAnywhere},
		{"ScanWhilePagesCome", testScanRace},
		{"PastRuns", testPastRuns},
		{"CountPast", testCountPast},
		{"PastOfGenerations", testPastOfGenerations},
		{"PastEntries", testPastEntries},
		{"ExpirePast", testExpirePast},
		{"Audit", testAudit},
		{"Batches", testBatches},
		{"BatchesAtOnce", testBatchesAtOnce},
		{"Entries", testEntries},
		{"Sites", testSites},
		{"DropSites", testDropSites},
		{"LinkStates", testLinkStates},
		{"FindLinks", testFindLinks},
		{"LinkFilters", testLinkFilters},
	} {
		if len(only) > 0 && !slices.Contains(only, test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			s := &suite{T: t, ctx: t.Context(), store: open(t), ids: &ids.Sequence{}}
			t.Cleanup(func() { s.ok(s.store.Close()) })
			test.run(s)
		})
	}
}

// suite is one test with its store.
type suite struct {
	*testing.T
	ctx   context.Context
	store rowstore.Store
	ids   *ids.Sequence
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) equal(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// job makes a new job of a new scraper in a new group.
func (s *suite) job() rowstore.Job {
	return s.jobOf(s.ids.New(), s.ids.New())
}

func (s *suite) jobOf(group, scraper ids.ID) rowstore.Job {
	return rowstore.Job{ID: s.ids.New(), Customer: "customer", Group: group, Scraper: scraper,
		Started: 1_700_000_000_000_000}
}

// delivered returns a page with rows.
func (s *suite) delivered(job rowstore.Job, seq, page uint32, rows ...string) rowstore.PageWrite {
	p := &model.Page{
		Job: job.ID, Unit: model.Unit{Seq: seq, Page: page}, Fetch: s.ids.New(),
		Outcome: model.Delivered, Status: 200,
		URL: fmt.Sprintf("https://host.test/%d?page=%d", seq, page), PriceRow: "tier:plain",
		Quantity: 1,
		Tries:    []model.Try{{Status: 200, Millis: 12}}, Bytes: 1000, Millis: 12,
		At: 1_700_000_000_000_000,
	}
	for _, row := range rows {
		p.Rows = append(p.Rows, []byte(row))
	}
	return rowstore.PageWrite{Job: job, Page: p}
}

// errored returns a page that was not delivered.
func (s *suite) errored(job rowstore.Job, seq, page uint32, code string,
	status uint16) rowstore.PageWrite {
	w := s.delivered(job, seq, page)
	w.Page.Outcome, w.Page.Code, w.Page.Status, w.Page.PriceRow, w.Page.Quantity = model.Errored,
		code, status, "", 0
	return w
}

func (s *suite) put(pages ...rowstore.PageWrite) []*model.Receipt {
	s.Helper()
	receipts, err := s.store.PutPages(s.ctx, pages)
	s.ok(err)
	s.equal("number of receipts", len(pages), len(receipts))
	return receipts
}

// receipt returns the receipt of a page that is stored as it is.
func receipt(w rowstore.PageWrite) *model.Receipt {
	p := w.Page
	return &model.Receipt{Job: p.Job, Unit: p.Unit, Outcome: p.Outcome, PriceRow: p.PriceRow,
		Quantity: p.Quantity,
		Items:    uint32(len(p.Rows)), Last: p.Last, Next: p.Next}
}

// rows reads all rows of a scope, up to 1,000, in the order of their places.
func (s *suite) rows(scope rowstore.Scope) []string {
	s.Helper()
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	docs, _, err := s.store.Scan(s.ctx,
		rowstore.ScanQuery{Scope: scope, Upto: horizon, Limit: 1000})
	s.ok(err)
	count, err := s.store.Count(s.ctx, scope, nil)
	s.ok(err)
	s.equal("count of rows", int64(len(docs)), count)
	return texts(docs)
}

func texts(docs []json.RawMessage) []string {
	rows := []string{}
	for _, doc := range docs {
		rows = append(rows, string(doc))
	}
	return rows
}

func only(job rowstore.Job) rowstore.Scope {
	return rowstore.Scope{Group: job.Group, Jobs: []ids.ID{job.ID}}
}

// numbered makes count rows {"n":from}, {"n":from+1} and so on.
func numbered(from, count int) []string {
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":%q}`, from+i, strings.Repeat("x", i%50))
	}
	return rows
}

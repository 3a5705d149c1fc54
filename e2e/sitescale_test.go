package e2e

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestScaleOfSites makes a site of a million links, has a run read them, and waits until each has
// its state. Each page is requested once, and rows and charge are exact. The log says how long each
// part took, and how another customer's small runs fared beside it.
func TestScaleOfSites(t *testing.T) {
	onlyAtScale(t)
	links := *manyLinks
	web := newWeb(t, synthweb.Config{Hosts: 1000, PagesPerHost: (links + 999) / 1000,
		PageBytes: []int{3000}, Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 97},
			{Class: synthweb.NotFound, Weight: 3}}})
	small := newWeb(t, synthweb.Config{Suffix: "beside", Hosts: 20, PagesPerHost: 1,
		PageBytes: []int{3000}})
	s := newService(t, web, append(suite.Fast(), "--egress-origin",
		small.Pattern()+"="+small.Addr())...)
	s.Fill(s.Client, suite.Plenty)
	other := s.Customer("other")
	s.Fill(other, suite.Plenty)
	ctx := suite.Within(t, 2*time.Hour)
	scraper, err := putSited(ctx, s.Client, web.URL(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	took := func(what string, do func() error) {
		t.Helper()
		began, before := time.Now(), suite.Must(s.p.Usage())(t)
		beside := runBeside(ctx, other, slices.Collect(small.URLs(20)))
		err := do()
		after := suite.Must(s.p.Usage())(t)
		took := time.Since(began)
		runs, longest, at, failed := beside()
		t.Logf("%s: %v, %v of the processor, %d MB at most so far; beside it %d small runs, "+
			"of at most %v, begun after %v", what, took.Round(time.Millisecond),
			(after.CPU - before.CPU).Round(time.Millisecond), after.PeakBytes>>20, runs,
			longest.Round(time.Millisecond), at.Round(time.Millisecond))
		if err != nil || failed != nil {
			t.Fatalf("%s: %v; beside it: %v", what, err, failed)
		}
	}

	took("put", func() error { return putSite(ctx, s.Client, scraper, lines(web, links)) })
	var site struct {
		ID        string
		LinkCount int
	}
	var run suite.Launched
	took("launch", func() (err error) {
		if err = s.Call(ctx, "GET", "/api/scraper/"+scraper+"/site", nil, nil, &site); err == nil {
			run, err = s.RunScraper(ctx, scraper)
		}
		return err
	})
	if site.LinkCount != links {
		t.Fatalf("the site has %d links", site.LinkCount)
	}
	took("run", func() error {
		job, entry, err := s.Finished(ctx, run)
		failed := failing(t, web, links)
		if good := int64(links - failed); err == nil {
			amount := -(good - suite.FreeGrant) * suite.PlainPrice
			if job.SuccessLinks != good || job.ItemsQuantity != good ||
				job.ErrorLinks != int64(failed) || entry.AmountMicros != amount {
				err = fmt.Errorf("%d links fail: %+v, charged %d, want %d", failed, job,
					entry.AmountMicros, amount)
			}
		}
		return err
	})
	took("states", func() error {
		return awaitStates(ctx, s.Client, site.ID, web.URLs(links))
	})
	took("rows", func() error { return checkRows(ctx, s.Client, run.JobID, web, links) })
	for name, query := range map[string]url.Values{"first": {}, "last": {"page": {"1000000"}},
		"by title": {"sortField": {"title"}, "page": {"10"}}, "search": {"q": {"/77"}}} {
		query.Set("size", "1000")
		took("a page of links: "+name, func() error {
			return s.Call(ctx, "GET", "/api/scraper/site/"+site.ID+"/links", query, nil, nil)
		})
	}
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	if usage := suite.Must(s.p.Usage())(t); usage.PeakBytes > mostMemory {
		t.Errorf("the process had %d MB, at most %d", usage.PeakBytes>>20, mostMemory>>20)
	}
	s.Down(t)
	checkStates(t, s.single, site.ID, web, links)
	asked := suite.Must(web.Recount())(t)
	if len(asked.URLs) != links {
		t.Errorf("%d addresses were asked for", len(asked.URLs))
	}
	for address, count := range asked.URLs {
		if count.Requests != 1 {
			t.Fatalf("%s was asked for %d times", address, count.Requests)
		}
	}
}

// putSited makes a scraper of products for a site.
func putSited(ctx context.Context, who suite.Client, first string) (scraper string, err error) {
	group, err := who.PutGroup(ctx, "g")
	if err != nil {
		return "", err
	}
	return who.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: "s",
		Type: model.SingleProduct, SourceConfig: model.SourceConfig{URL: first},
		ItemsConfig: synthweb.ProductFields()}})
}

// putSite gives a scraper a site of links, one per line.
func putSite(ctx context.Context, who suite.Client, scraper string, links io.Reader) error {
	answer, err := who.Do(ctx, "PUT", "/api/scraper/site",
		url.Values{"name": {"all"}, "scraperRef": {scraper}}, "text/uri-list", links)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// awaitStates waits until the link that is last in a run's list has a state. It reads the page of
// links with it.
func awaitStates(ctx context.Context, who suite.Client, site string, urls iter.Seq[string]) error {
	link, before := last(urls), 0
	for address := range urls {
		if address < link {
			before++
		}
	}
	query := url.Values{"size": {"1000"}, "page": {strconv.Itoa(before / 1000)}}
	for {
		var page struct{ Content []struct{ URL, State string } }
		err := who.Call(ctx, "GET", "/api/scraper/site/"+site+"/links", query, nil, &page)
		if err != nil {
			return err
		}
		if at := before % 1000; at >= len(page.Content) || page.Content[at].URL != link {
			return fmt.Errorf("%s is not at place %d of %d", link, at, len(page.Content))
		} else if page.Content[at].State != "PENDING" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has no state: %w", link, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// checkStates inspects the row store of a stopped product. The site has one version, with each
// address of the web once, and each state matches its page.
func checkStates(t *testing.T, of *single, site string, web *synthweb.Web, links int) {
	t.Helper()
	err := of.withRows(t.Context(), func(store rowstore.Store) error {
		id, err := ids.Parse(site)
		if err != nil {
			return err
		}
		versions, err := store.AllSites(t.Context())
		if err != nil || len(versions) != 1 || int(versions[0].Count) != links {
			return fmt.Errorf("versions of sites: %+v, %w", versions, err)
		}
		next, stop := iter.Pull(web.URLs(links))
		defer stop()
		q := rowstore.SiteQuery{Version: versions[0].ID, Site: id, Limit: rowstore.MaxSitePart}
		for seen := 0; ; {
			part, err := store.SiteLinks(t.Context(), q)
			if err != nil {
				return err
			}
			for _, link := range part {
				address, _ := next()
				want := rowstore.LinkVisited
				if fails(t, web, address) {
					want = rowstore.LinkErrored
				}
				if q.From = link.Seq + 1; link.URL != address || link.State != want {
					return fmt.Errorf("link %d is %s, %v, want %s, %v", link.Seq, link.URL,
						link.State, address, want)
				}
			}
			if seen += len(part); len(part) < q.Limit {
				if seen != links {
					err = fmt.Errorf("the site has %d links", seen)
				}
				return err
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// checkRows reads a run's rows to their end. Each page with a row has it once, unchanged.
func checkRows(ctx context.Context, who suite.Client, job string, web *synthweb.Web,
	links int) error {
	seen, query := map[string]bool{}, url.Values{"jobId": {job}, "limit": {"1000"}}
	for more := true; more; {
		var page struct {
			Items      []map[string]any
			NextCursor string
			HasMore    bool
		}
		if err := who.Call(ctx, "GET", "/api/scraper/data", query, nil, &page); err != nil {
			return err
		}
		for _, row := range page.Items {
			address, _ := row["_sourceUrl"].(string)
			truth, err := web.Truth(address)
			if err != nil || seen[address] || len(truth.Pages[0].Rows) != 1 {
				return fmt.Errorf("a row too many of %q: %w", address, err)
			}
			seen[address] = true
			for name := range row {
				if strings.HasPrefix(name, "_") {
					delete(row, name)
				}
			}
			if want := truth.Pages[0].Rows[0]; !reflect.DeepEqual(synthweb.Row(row), want) {
				return fmt.Errorf("the row of %s is %v, want %v", address, row, want)
			}
		}
		more = page.HasMore
		query.Set("cursor", page.NextCursor)
	}
	for address := range web.URLs(links) {
		truth, err := web.Truth(address)
		if err != nil || seen[address] != (truth.Pages[0].Outcome == model.Delivered) {
			return fmt.Errorf("%s has a row: %t, %w", address, seen[address], err)
		}
	}
	return nil
}

// failing counts a web's first pages that are not delivered.
func failing(t *testing.T, web *synthweb.Web, links int) (n int) {
	t.Helper()
	for address := range web.URLs(links) {
		if fails(t, web, address) {
			n++
		}
	}
	return n
}

func fails(t *testing.T, web *synthweb.Web, address string) bool {
	t.Helper()
	return suite.Must(web.Truth(address))(t).Pages[0].Outcome == model.Errored
}

func last(all iter.Seq[string]) (address string) {
	for address = range all {
	}
	return address
}

// runBeside makes small runs, a second apart, until end is called. end returns their number, the
// longest duration, and when that run began.
func runBeside(ctx context.Context, who suite.Client, urls []string) (end func() (runs int,
	longest, at time.Duration, err error)) {
	over, done := make(chan struct{}), make(chan struct{})
	var runs int
	var longest, at time.Duration
	first := time.Now()
	var failed error
	go func() {
		defer close(done)
		for pause := time.Duration(0); failed == nil; pause = time.Second {
			select {
			case <-over:
				return
			case <-time.After(pause):
			}
			began, order := time.Now(), suite.ProductOrder(who, urls)
			query, err := order.Query(ctx)
			if err != nil {
				failed = err
				return
			}
			run, err := who.RunList(ctx, query, order.Body())
			if err == nil {
				_, _, err = who.Finished(ctx, run)
			}
			failed, runs = err, runs+1
			if took := time.Since(began); took > longest {
				longest, at = took, began.Sub(first)
			}
		}
	}()
	return func() (int, time.Duration, time.Duration, error) {
		close(over)
		<-done
		return runs, longest, at, failed
	}
}

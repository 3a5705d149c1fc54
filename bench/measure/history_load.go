package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client/historytest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/api"
)

// who returns a client for an active customer.
func (s *service) who(customer int) api.Client {
	as := s.Client
	as.Token = historytest.Key(customer)
	return as
}

// runLive launches runs of one page through the API, for all active customers in turn. It waits
// until all have ended and are in the archive.
func (c *historyCase) runLive(ctx context.Context, s *service) error {
	c.on.Say("history: %d runs through the API", c.live)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeout(ctx, liveWithin)
	defer stop()
	begun, next := time.Now(), make(chan int)
	var workers sync.WaitGroup
	for range liveAtOnce {
		workers.Go(func() {
			for n := range next {
				customer := n % c.Active
				run, err := s.who(customer).RunScraper(ctx,
					c.scrapers(customer, n/c.Active).String())
				if err == nil && run.Status == "FAILED" {
					err = fmt.Errorf("a run failed: %s", run.Message)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for n := 0; n < c.live && ctx.Err() == nil; n++ {
		next <- n
		if n%10_000 == 0 && n > 0 {
			c.on.Say("history: %d launched after %v", n, time.Since(begun).Round(time.Second))
		}
	}
	close(next)
	workers.Wait()
	for ctx.Err() == nil {
		text, err := fetch(ctx, "http://"+c.ops+"/metrics")
		if err != nil {
			return err
		}
		if metric(text, "shoal_archive_records_total") >= float64(2*c.live) {
			c.report.note("%s: %s runs through the API were launched, ended and archived in %s s",
				c.storeName, thousands(strconv.Itoa(c.live)), figure(time.Since(begun).Seconds()))
			return nil
		}
		_ = pause(ctx, 200*time.Millisecond) // the context ends the loop
	}
	return context.Cause(ctx)
}

const (
	workSettled = 5 * time.Second // without any work
	workWithin  = 30 * time.Minute
)

// settleWork waits until background work over all ended runs is done. After a restore that work
// begins with the first run. In a service that has grown it has kept up. The daily check is not
// awaited: it reads one run at a time, for hours each day.
func (c *historyCase) settleWork(ctx context.Context) error {
	c.on.Say("history: background work goes over the runs")
	begun := time.Now()
	for last := begun; time.Since(last) < workSettled; {
		text, err := fetch(ctx, "http://"+c.ops+"/metrics")
		if err != nil {
			return err
		}
		for _, kind := range []string{work.Changes, work.LinkStates, work.Retain} {
			for _, state := range []string{"ready", "held"} {
				if metric(text, `shoal_work_items{kind="`+kind+`",state="`+state+`"}`) > 0 {
					last = time.Now()
				}
			}
		}
		if took := time.Since(begun); took > workWithin {
			return fmt.Errorf("background work is not through with the runs after %v", took)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	c.report.note("%s, %s runs: background work went over them in %s s", c.storeName,
		thousands(strconv.Itoa(c.runs)), figure((time.Since(begun) - workSettled).Seconds()))
	return nil
}

// metric returns the value of a metric by name, with its labels if any; 0: there is none.
func metric(text []byte, name string) float64 {
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			if number, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return number
			}
		}
	}
	return 0
}

// snapshots returns the size of the newest snapshot, in bytes, and the mean time of all.
func (c *historyCase) snapshots(ctx context.Context) (size, seconds float64, err error) {
	text, err := fetch(ctx, "http://"+c.ops+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	count := metric(text, "shoal_controlplane_snapshot_seconds_count")
	if count == 0 {
		return 0, 0, fmt.Errorf("--time: no snapshot was written meanwhile")
	}
	c.report.note("%s, %s runs: %s snapshots were written beside the commands", c.storeName,
		thousands(strconv.Itoa(c.runs)), figure(count))
	return metric(text, "shoal_controlplane_snapshot_bytes"),
		metric(text, "shoal_controlplane_snapshot_seconds_sum") / count, nil
}

// listing is one of the two lists that are read.
type listing struct {
	name, numbered, all string
}

var listings = []listing{
	{"history", "/api/scraper/load-history", "/api/scraper/load-history/all"},
	{"ledger", "/api/wallet/transactions", "/api/wallet/transactions/all"},
}

const (
	pageSize   = 20
	cursorSize = 100
	farthest   = 100_000 // records that page numbers can reach
)

// readPages reads pages of both lists, for random customers, and for the one with the most runs.
func (c *historyCase) readPages(ctx context.Context, s *service, point *historyPoint) error {
	if c.runs == 0 {
		return nil
	}
	c.on.Say("history: reading pages in %s", c.Rest)
	if !clock.Pause(ctx, clock.System{}, c.Rest) {
		return ctx.Err()
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for _, l := range listings {
		for _, one := range []struct {
			whose    string
			customer func() int
			judged   bool
		}{
			{"", func() int { return 1 + chance.IntN(c.Active-1) }, true},
			{" of the largest customer", func() int { return 0 }, false},
		} {
			newest, later, cursor := &histogram{}, &histogram{}, &histogram{}
			for cursor.n < int64(c.Reads) {
				who := s.who(one.customer())
				total, err := l.read(ctx, who, newest, 0)
				if err != nil {
					return err
				}
				last := (min(total, farthest) - 1) / pageSize
				if last > 0 && later.n < int64(c.Reads) {
					if _, err := l.read(ctx, who, later, 1+chance.IntN(last)); err != nil {
						return err
					}
				}
				if err := l.readAll(ctx, who, cursor, c.Reads); err != nil {
					return err
				}
			}
			for newest.n < int64(c.Reads) {
				who := s.who(one.customer())
				total, err := l.read(ctx, who, newest, 0)
				if err != nil {
					return err
				}
				if last := (min(total, farthest) - 1) / pageSize; last > 0 {
					if _, err := l.read(ctx, who, later, 1+chance.IntN(last)); err != nil {
						return err
					}
				}
			}
			for _, kind := range []struct {
				name  string
				h     *histogram
				judge *float64
			}{{"newest", newest, &point.newest}, {"later", later, &point.later},
				{"by cursor", cursor, &point.later}} {
				c.pages.add(fmt.Sprintf("%s: %s, %s%s", thousands(strconv.Itoa(c.runs)), l.name,
					kind.name, one.whose), float64(kind.h.n), millis(kind.h.quantile(0.5)),
					millis(kind.h.quantile(0.99)), millis(kind.h.longest))
				if one.judged {
					*kind.judge = max(*kind.judge, millis(kind.h.quantile(0.99)))
				}
			}
		}
	}
	return nil
}

// read reads a page by number and returns the total number of records.
func (l listing) read(ctx context.Context, who api.Client, h *histogram, number int) (int, error) {
	begun := time.Now()
	body, err := get(ctx, who, l.numbered, url.Values{"page": {strconv.Itoa(number)},
		"size": {strconv.Itoa(pageSize)}})
	if err != nil {
		return 0, err
	}
	h.add(time.Since(begun))
	var page struct {
		Content       []json.RawMessage
		TotalElements int
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return 0, fmt.Errorf("bench: page of the %s: %w", l.name, err)
	}
	want := min(max(page.TotalElements-number*pageSize, 0), pageSize)
	if len(page.Content) != want {
		return 0, fmt.Errorf("bench: page %d of the %s has %d records and should have %d", number,
			l.name, len(page.Content), want)
	}
	return page.TotalElements, nil
}

// readAll reads with the cursor to the end, at most most pages.
func (l listing) readAll(ctx context.Context, who api.Client, h *histogram, most int) error {
	query := url.Values{"limit": {strconv.Itoa(cursorSize)}}
	for range most {
		begun := time.Now()
		body, err := get(ctx, who, l.all, query)
		if err != nil {
			return err
		}
		h.add(time.Since(begun))
		var page struct{ NextCursor *string }
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("bench: the %s by cursor: %w", l.name, err)
		}
		if page.NextCursor == nil {
			return nil
		}
		query.Set("cursor", *page.NextCursor)
	}
	return nil
}

func get(ctx context.Context, who api.Client, path string, query url.Values) ([]byte, error) {
	answer, err := who.Do(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return nil, fmt.Errorf("bench: %s: %w", path, err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	return io.ReadAll(answer.Body)
}

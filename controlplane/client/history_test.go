package client_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// twins are two control planes that get the same commands. One of them archives its history now and
// then.
type twins struct {
	t           *testing.T
	clock       *clock.Manual
	ids         ids.Sequence
	whole, less *clienttest.Client
	past        rowstoretest.Archive
	group       ids.ID
	scrapers    []ids.ID
	open        []ids.ID
}

func newTwins(t *testing.T) *twins {
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	w := &twins{t: t, clock: at, whole: clienttest.New(t, at), less: clienttest.New(t, at)}
	w.group = w.ids.New()
	w.must(client.OpenCustomer{Customer: "alice", Entry: w.ids.New()})
	w.must(client.AdjustWallet{Customer: "alice", Entry: w.ids.New(), Amount: 1_000_000})
	w.must(client.PutGroup{Create: true, ID: w.group, Customer: "alice", Name: "g"})
	for range 3 {
		w.scrapers = append(w.scrapers, w.ids.New())
		scraper := w.scrapers[len(w.scrapers)-1]
		w.must(client.PutScraper{Create: true, ID: scraper, Customer: "alice", Group: w.group,
			Spec: model.Scraper{Name: scraper.String(), Type: model.SingleProduct}})
	}
	return w
}

func (w *twins) must(payload command.Payload) {
	w.t.Helper()
	w.whole.Must(w.t, payload)
	w.less.Must(w.t, payload)
}

// launch begins a run unless its scraper has an open one.
func (w *twins) launch(scraper ids.ID) {
	for _, job := range w.whole.View().OpenJobsOf(scraper) {
		if !job.State.Final() {
			return
		}
	}
	run := client.LaunchRun{Job: w.ids.New(), Entry: w.ids.New(), Customer: "alice",
		Scraper: scraper, List: w.ids.New(), Links: 3, Tiers: model.TiersOf(model.Plain)}
	w.must(run)
	w.open = append(w.open, run.Job)
}

// end stops a run, or settles its pages to the end, and closes it.
func (w *twins) end(at int, delivered uint32) {
	job := w.open[at]
	w.open = slices.Delete(w.open, at, at+1)
	if delivered == 0 {
		w.must(client.StopRun{Customer: "alice", Job: job})
	}
	for seq := range delivered {
		outcome := model.Receipt{Job: job, Unit: model.Unit{Seq: seq}, Outcome: model.Errored,
			Last: true}
		if seq > 0 {
			outcome.Outcome, outcome.PriceRow = model.Delivered, "tier:plain"
			outcome.Quantity, outcome.Items = 1, 4
		}
		for _, c := range []*clienttest.Client{w.whole, w.less} {
			c.Dispatch(w.t, job, seq)
			if err := c.Settle(w.t.Context(), []model.Receipt{outcome}, nil); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for _, c := range []*clienttest.Client{w.whole, w.less} {
		c.CloseRun(w.t, job)
	}
}

// drop archives history of one twin; the other gets a command without effect.
func (w *twins) drop(keep int) {
	w.less.Archive(w.t, &w.past, keep)
	w.whole.Must(w.t, command.TickPayload{})
}

// TestHistoryIsWhole: whatever was archived, and in whatever steps, every read returns the same as
// without an archive.
func TestHistoryIsWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newTwins(t)
		// A setting: while it is raised, an older run may stay when a newer one has left.
		keep := rapid.IntRange(0, 3).Draw(r, "keep")
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			w.clock.Advance(time.Duration(rapid.IntRange(0, 1).Draw(r, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0, 1:
				w.launch(rapid.SampledFrom(w.scrapers).Draw(r, "scraper"))
			case 2, 3:
				if len(w.open) > 0 {
					w.end(rapid.IntRange(0, len(w.open)-1).Draw(r, "run"),
						rapid.SampledFrom([]uint32{0, 3}).Draw(r, "delivered"))
				}
			case 4:
				w.must(client.AdjustWallet{Customer: "alice", Entry: w.ids.New(),
					Amount: 1_000_000})
			default:
				w.drop(keep)
			}
		}
		w.compare(r)
	})
}

// alike ignores what differs because only one twin got some commands.
var alike = cmp.Options{cmpopts.IgnoreFields(client.Job{}, "Index"),
	cmpopts.IgnoreFields(client.Entry{}, "Created"), cmpopts.EquateEmpty()}

func same[T any](r *rapid.T, what string, read func(*client.History, *client.View) (T, error),
	w *twins) {
	r.Helper()
	want, err := read(client.NewHistory(&rowstoretest.Archive{}), w.whole.View())
	if err != nil {
		r.Fatal(err)
	}
	got, err := read(client.NewHistory(&w.past), w.less.View())
	if err != nil {
		r.Fatal(err)
	}
	if diff := cmp.Diff(want, got, alike); diff != "" {
		r.Fatalf("%s (-whole +less):\n%s", what, diff)
	}
}

// answer is a page and the total over all pages.
type answer[T any] struct {
	Page  []T
	Total int64
}

func (w *twins) compare(r *rapid.T) {
	ctx := context.Background()
	offset := rapid.IntRange(0, 20).Draw(r, "offset")
	limit := rapid.IntRange(1, 9).Draw(r, "limit")
	wanted := w.scrapers[0]
	var without []ids.ID
	w.whole.View().CustomerJobs("alice", func(job *client.Job) bool {
		if rapid.IntRange(0, 3).Draw(r, "left out") == 0 {
			without = append(without, job.ID)
		}
		return true
	})
	at := w.clock.Now().UnixMilli()
	span := rowstore.PastSpan{From: max(0, at-rapid.Int64Range(-1, 20).Draw(r, "from"))}
	if rapid.Bool().Draw(r, "ends") {
		span.To = at - rapid.Int64Range(-1, 20).Draw(r, "to")
	}
	if rapid.Bool().Draw(r, "whole") {
		span = rowstore.PastSpan{}
	}
	for _, only := range []bool{false, true} {
		page := client.RunPage{Customer: "alice", By: rowstore.ByDelivered,
			Compare:    func(a, b *client.Job) int { return int(a.Delivered) - int(b.Delivered) },
			Descending: rapid.Bool().Draw(r, "down"), Offset: offset, Limit: limit,
			Without: without, Queued: span}
		if only {
			page.Wanted = func(k rowstore.PastKind) bool { return k.Scraper == wanted }
		}
		same(r, "page of runs", func(h *client.History, v *client.View) (answer[*client.Job],
			error) {
			jobs, total, err := h.Runs(ctx, v, page)
			return answer[*client.Job]{jobs, total}, err
		}, w)
	}
	same(r, "page of the ledger", func(h *client.History, v *client.View) (answer[*client.Entry],
		error) {
		entries, total, err := h.Entries(ctx, v, "alice", span, offset, limit)
		return answer[*client.Entry]{entries, total}, err
	}, w)
	same(r, "newest run", func(h *client.History, v *client.View) (*client.Job, error) {
		return h.Newest(ctx, v, "alice")
	}, w)
	same(r, "runs of a scraper", func(h *client.History, v *client.View) (all []*client.Job,
		err error) {
		err = h.ScraperRuns(ctx, v, wanted, func(j *client.Job) bool {
			all = append(all, j)
			return true
		})
		return all, err
	}, w)
	same(r, "runs of a span by cursor", func(h *client.History, v *client.View) (all []*client.Job,
		err error) {
		for place := (*rowstore.PastPlace)(nil); ; {
			of := client.RunsOf{Customer: "alice", Group: w.group, Queued: span}
			part, err := h.RunsBefore(ctx, v, of, place, limit)
			for _, j := range part {
				if !span.Has(j.Queued) {
					r.Errorf("a run of %d in %v", j.Queued, span)
				}
			}
			if all = append(all, part...); err != nil || len(part) < limit {
				_, total, _ := h.Runs(ctx, v, client.RunPage{Customer: "alice", Queued: span,
					By: rowstore.ByQueued, Compare: newerRun, Limit: 1})
				if int64(len(all)) != total {
					r.Errorf("%d runs of a span, and %d are counted", len(all), total)
				}
				return all, err
			}
			last := part[len(part)-1]
			place = &rowstore.PastPlace{Value: last.Queued, ID: last.ID}
		}
	}, w)
	same(r, "runs by cursor", func(h *client.History, v *client.View) (all []*client.Job,
		err error) {
		for place := (*rowstore.PastPlace)(nil); ; {
			part, err := h.RunsBefore(ctx, v, client.RunsOf{Customer: "alice"}, place, limit)
			if all = append(all, part...); err != nil || len(part) < limit {
				return all, err
			}
			last := part[len(part)-1]
			place = &rowstore.PastPlace{Value: last.Queued, ID: last.ID}
		}
	}, w)
	same(r, "the ledger of a span by cursor", func(h *client.History,
		v *client.View) (all []*client.Entry, err error) {
		for before := (*rowstore.PastPlace)(nil); ; {
			part, err := h.EntriesWithin(ctx, v, "alice", span, before, limit)
			for _, e := range part {
				if !span.Has(e.CreatedAt) {
					r.Errorf("an entry of %d in %v", e.CreatedAt, span)
				}
			}
			if all = append(all, part...); err != nil || len(part) < limit {
				_, total, _ := h.Entries(ctx, v, "alice", span, 0, 1)
				if int64(len(all)) != total {
					r.Errorf("%d entries of a span, and %d are counted", len(all), total)
				}
				return all, err
			}
			before = client.PlaceOf(part[len(part)-1])
		}
	}, w)
	same(r, "the ledger by cursor", func(h *client.History, v *client.View) (all []*client.Entry,
		err error) {
		for before := (*rowstore.PastPlace)(nil); ; {
			part, err := h.EntriesBefore(ctx, v, "alice", before, limit)
			if all = append(all, part...); err != nil || len(part) < limit {
				return all, err
			}
			before = client.PlaceOf(part[len(part)-1])
		}
	}, w)
	same(r, "closed runs and their entries", func(h *client.History,
		v *client.View) (all []any, err error) {
		for index := uint64(0); ; {
			part, err := h.ClosedAfter(ctx, v, index, limit)
			if err != nil || len(part) == 0 {
				return all, err
			}
			entries, err := h.EntriesOf(ctx, v, part)
			if err != nil {
				return all, err
			}
			var named []ids.ID
			for _, job := range part {
				named = append(named, job.ID)
			}
			byID, err := h.RunsByID(ctx, v, "alice", named)
			if err != nil {
				return all, err
			}
			for _, job := range part {
				one, err := h.Run(ctx, v, job.ID)
				if err != nil {
					return all, err
				}
				all = append(all, one, byID[job.ID], entries[job.Entry])
			}
			index = part[len(part)-1].Index
		}
	}, w)
	w.checkSums(r)
}

func newerRun(a, b *client.Job) int { return int(a.Queued - b.Queued) }

// checkSums checks the sums of the past on wallets and scrapers against all of it.
func (w *twins) checkSums(r *rapid.T) {
	view := w.less.View()
	wallet, here := view.Wallet("alice"), int64(0)
	view.Entries("alice", func(e *client.Entry) bool {
		if e.Sequence > wallet.Archived {
			here += e.Amount
		}
		return true
	})
	if wallet.ArchivedSum+here != wallet.Sealed {
		r.Errorf("archived %d and %d in the state make no %d", wallet.ArchivedSum, here,
			wallet.Sealed)
	}
	for _, id := range w.scrapers {
		ends := func(v *client.View) (all []ending) {
			v.ScraperJobs(id, func(j *client.Job) bool {
				if j.Closed {
					all = append(all, ending{j.State, j.Items})
				}
				return true
			})
			v.Scraper(id).Past.EachEnded(func(state model.JobState, items uint64) bool {
				all = append(all, ending{state, items})
				return true
			})
			return all[:min(10, len(all))]
		}
		if want, got := ends(w.whole.View()), ends(view); !slices.Equal(want, got) {
			r.Errorf("the last runs of a scraper ended as %v, want %v", got, want)
		}
		scraper := view.Scraper(id)
		if last := w.whole.View().Job(scraper.LastJob); last != nil &&
			view.Job(last.ID) == nil && (scraper.Past.Newest != last.Queued ||
			scraper.Past.State != last.State) {
			r.Errorf("the last run of a scraper was %s at %d, want %s at %d", scraper.Past.State,
				scraper.Past.Newest, last.State, last.Queued)
		}
	}
}

// ending is how a run ended.
type ending struct {
	state model.JobState
	items uint64
}

// asked records the largest number of records that one read asks for.
type asked struct {
	client.Past
	most int
}

func (a *asked) PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord, error) {
	a.most = max(a.most, q.Limit)
	return a.Past.PastRuns(ctx, q)
}

func (a *asked) PastEntries(ctx context.Context, q rowstore.PastEntriesQuery) (
	[]rowstore.PastEntry, error) {
	a.most = max(a.most, q.Limit)
	return a.Past.PastEntries(ctx, q)
}

// TestHistoryIsReadInParts: a read by cursor never holds more than one part.
func TestHistoryIsReadInParts(t *testing.T) {
	w := newTwins(t)
	const runs, most = 40, 3
	for range runs {
		w.clock.Advance(time.Second)
		w.launch(w.scrapers[0])
		w.end(0, 3)
	}
	w.less.Archive(t, &w.past, 2)
	past := &asked{Past: &w.past}
	history, view := client.NewHistory(past), w.less.View()
	read := 0
	for place := (*rowstore.PastPlace)(nil); ; {
		part, err := history.RunsBefore(t.Context(), view, client.RunsOf{Customer: "alice"}, place,
			most)
		if err != nil || len(part) > most {
			t.Fatalf("%d runs, %v", len(part), err)
		}
		if read += len(part); len(part) == 0 {
			break
		}
		last := part[len(part)-1]
		place = &rowstore.PastPlace{Value: last.Queued, ID: last.ID}
	}
	entries := 0
	for before := (*rowstore.PastPlace)(nil); ; {
		part, err := history.EntriesBefore(t.Context(), view, "alice", before, most)
		if err != nil || len(part) > most {
			t.Fatalf("%d entries, %v", len(part), err)
		}
		if entries += len(part); len(part) == 0 {
			break
		}
		before = client.PlaceOf(part[len(part)-1])
	}
	if read != runs || entries < runs || past.most > most {
		t.Errorf("%d runs and %d entries, by at most %d records", read, entries, past.most)
	}
}

package fetcher

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// Pages of a start address whose domain has a price are charged by that row, whatever their tier.
// An endpoint's row has precedence.
func TestPriceOfADomain(t *testing.T) {
	for name, c := range map[string]struct {
		charge model.Charge
		domain string
		tiers  model.TierSet
		want   string
	}{
		"plain": {domain: "domain:a.test", tiers: model.TiersOf(model.Plain),
			want: "domain:a.test"},
		"rendered": {domain: "domain:a.test", tiers: model.Rendering, want: "domain:a.test"},
		"none":     {tiers: model.Rendering, want: "tier:render"},
		"endpoint": {charge: model.Charge{Row: "plugin:x"}, domain: "domain:a.test",
			tiers: model.TiersOf(model.Plain), want: "plugin:x"},
		"endpoint, rendered": {charge: model.Charge{Row: "plugin:x"}, domain: "domain:a.test",
			tiers: model.Rendering, want: "domain:a.test"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					allTiers(r, config)
					r.control.jobs[jobID] = &client.Job{ID: jobID, State: model.Running,
						Charge: c.charge}
				})
				defer stop()
				task := r.task(4, "http://www.a.test/x")
				task.Tiers, task.Domain = c.tiers, c.domain
				r.send(task)
				if p := r.pages(1)[0]; p.Outcome != model.Delivered || p.PriceRow != c.want ||
					p.Quantity != 1 {
					t.Errorf("page is %+v", p)
				}
			})
		})
	}
}

func TestPageOfATask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, _ *Config) { r.web.latency = time.Second })
		defer stop()
		r.send(r.task(4, "http://A.test/x"))
		p := r.pages(1)[0]
		if p.Job != jobID || p.Unit != (model.Unit{Seq: 4}) || p.Fetch.IsZero() ||
			p.Outcome != model.Delivered || !p.Last ||
			p.Status != 200 || p.PriceRow != "tier:plain" || p.Quantity != 1 || p.Next != nil ||
			p.Spent {
			t.Errorf("page is %+v", p)
		}
		if p.URL != "http://A.test/x" || p.Final != "" || p.URLHash != 0 {
			t.Errorf("addresses are %q, %q, hash %d", p.URL, p.Final, p.URLHash)
		}
		if len(p.Rows) != 1 || string(p.Rows[0]) != `{"title":"http://a.test/x"}` {
			t.Errorf("rows are %s", p.Rows)
		}
		if want := []model.Try{{Status: 200, Millis: 1000}}; !slices.Equal(p.Tries, want) ||
			p.Millis != 1000 || p.Bytes != 24 {
			t.Errorf("tries are %+v, %d ms, %d bytes", p.Tries, p.Millis, p.Bytes)
		}
		synctest.Wait()
		if c := r.f.Counts(); r.web.released != 1 || c.Open != 0 || c.Delivered != 1 ||
			c.HeldBytes != 0 || c.Hosts != 0 {
			t.Errorf("%d bodies released, counts are %+v", r.web.released, c)
		}
	})
}

func TestOutcomes(t *testing.T) {
	const url = "http://a.test/"
	for name, c := range map[string]struct {
		prepare func(*rig)
		task    func(*model.Task)
		want    string
		tries   int
	}{
		"delivered": {want: "0 delivered last", tries: 1},
		"no row": {prepare: func(r *rig) { r.web.page(url, "<p>nothing") },
			want: "0 errored no_rows last", tries: 1},
		"comes right": {prepare: func(r *rig) {
			r.web.fails(url, 2,
				web.Failure{Code: fault.PageConnect, Retry: true})
		}, want: "0 delivered last", tries: 3},
		"gone": {prepare: func(r *rig) {
			r.web.fails(url, -1,
				web.Failure{Code: fault.PageStatus, Status: 404})
		}, want: "0 errored http_status last", tries: 1},
		"never comes": {prepare: func(r *rig) {
			r.web.fails(url, -1,
				web.Failure{Code: fault.PageConnect, Retry: true})
		}, want: "0 errored connect_failed last", tries: 3},
		"throttled": {prepare: func(r *rig) {
			r.web.fails(url, 1,
				web.Failure{Code: fault.PageStatus, Status: 429, Retry: true,
					RetryAfter: 9 * time.Second})
		}, want: "0 delivered last", tries: 2},
		"a wall": {prepare: func(r *rig) {
			r.web.fails(url, -1,
				web.Failure{Code: fault.PageBlocked, Status: 200})
		}, want: "0 errored blocked last", tries: 1},
		"robots forbid": {prepare: func(r *rig) { r.web.forbid[url] = true },
			want: "0 errored robots_forbidden last", tries: 1},
		"too slow": {prepare: func(r *rig) { r.web.latency = time.Minute },
			want: "0 errored timeout last", tries: 3},
		"invalid address": {task: func(t *model.Task) { t.URL = "mailto:x" },
			want: "0 errored invalid_url last"},
		"ended run": {task: func(t *model.Task) { t.Job = endedID },
			want: "0 cancelled last"},
		"unknown run": {task: func(t *model.Task) { t.Job = scraperID },
			want: "0 cancelled last"},
		"unknown recipe": {task: func(t *model.Task) { t.Revision = 9 },
			want: "0 errored recipe_missing last"},
		"no tier": {task: func(t *model.Task) { t.Tiers = model.TiersOf(model.Render) },
			want: "0 errored tier_missing last"},
		"no page": {prepare: func(r *rig) {
			r.web.at(url, func(context.Context, web.Request) (*web.Page, error) {
				pdf := r.web.html(url, "%PDF")
				pdf.ContentType = "application/pdf"
				return pdf, nil
			})
		}, want: "0 errored not_html last", tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, title, func(r *rig, _ *Config) {
					if c.prepare != nil {
						c.prepare(r)
					}
				})
				defer stop()
				task := r.task(0, url)
				if c.task != nil {
					c.task(&task)
				}
				r.send(task)
				p := r.pages(1)[0]
				if got := shorthand(p); got != c.want || len(p.Tries) != c.tries {
					t.Errorf("page is %q after %d tries, want %q after %d", got, len(p.Tries),
						c.want, c.tries)
				}
				if (p.Outcome == model.Delivered) != (p.Quantity == 1 && len(p.Rows) > 0) {
					t.Errorf("%s: quantity %d, %d rows", c.want, p.Quantity, len(p.Rows))
				}
				r.nothingMore()
			})
		})
	}
}

func TestRowsBeyondARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		many := title
		many.Type = model.MultipleProducts
		r, stop := start(t, 1, many, nil)
		defer stop()
		row := "<div><h1>" + string(slices.Repeat([]byte("x"), 900_000)) + "</h1></div>"
		r.web.page("http://a.test/", string(slices.Repeat([]byte(row), 10)))
		r.send(r.task(0, "http://a.test/"))
		if got := shorthand(r.pages(1)[0]); got != "0 errored row_too_large last" {
			t.Errorf("page is %q", got)
		}
	})
}

// items returns a listing page.
func items(names ...string) string {
	body := "<html>"
	for _, name := range names {
		body += "<div><h1>" + name + "</h1></div>"
	}
	return body
}

func link(to string) string { return "<a rel=next href='" + to + "'>" }

func TestChains(t *testing.T) {
	byParam := model.Pagination{Type: model.URLPageParam, Param: "p"}
	byLink := model.Pagination{Type: model.NextLink, Selector: "a[rel=next]"}
	byPath := model.Pagination{Type: model.URLTemplate, Template: "/l/{page}"}
	three, ten := 3, 10
	byOffset := model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: &ten}
	bounded := byParam
	bounded.Max = &three
	const url = "http://a.test/l?q=1"
	for name, c := range map[string]struct {
		pagination model.Pagination
		web        map[string]string
		budget     uint32
		want       []string
		asked      int
	}{
		"an empty page ends it": {byParam,
			map[string]string{url: items("a", "b"), url + "&p=2": items("c"), url + "&p=3": "<p>"},
			10,
			[]string{"0 delivered", "1 delivered", "2 empty last"}, 3},
		"the same page again ends it": {byParam,
			map[string]string{url: items("a"), url + "&p=2": items("b"), url + "&p=3": items("b")},
			10,
			[]string{"0 delivered", "1 delivered", "2 empty last"}, 3},
		"a page of known rows ends it": {byParam,
			map[string]string{url: items("a", "b"), url + "&p=2": items("b")}, 10,
			[]string{"0 delivered", "1 empty last"}, 2},
		"a page that is not there ends it": {byParam,
			map[string]string{url: items("a"), url + "&p=2": items("b"), url + "&p=3": "404"}, 10,
			[]string{"0 delivered", "1 delivered", "2 empty last"}, 3},
		"nor is one that is gone": {byOffset,
			map[string]string{url: items("a"), url + "&o=10": "410"}, 10,
			[]string{"0 delivered", "1 empty last"}, 2},
		"nor one of a path": {byPath,
			map[string]string{url: items("a"), "http://a.test/l/2": "404"}, 10,
			[]string{"0 delivered", "1 empty last"}, 2},
		"the first page has to be there": {byParam, map[string]string{url: "404"}, 10,
			[]string{"0 errored http_status last"}, 1},
		"and so has one that a link names": {byLink,
			map[string]string{url: items("a") + link("/m"), "http://a.test/m": "404"}, 10,
			[]string{"0 delivered", "1 errored http_status last"}, 2},
		"a failing site is an error, after all tries": {byParam,
			map[string]string{url: items("a"), url + "&p=2": "500"}, 10,
			[]string{"0 delivered", "1 errored http_status last"}, 4},
		"another refusal is an error": {byParam,
			map[string]string{url: items("a"), url + "&p=2": "451"}, 10,
			[]string{"0 delivered", "1 errored http_status last"}, 2},
		"the most pages": {bounded,
			map[string]string{url: items("a"), url + "&p=2": items("b"), url + "&p=3": items("c")},
			10,
			[]string{"0 delivered", "1 delivered", "2 delivered last"}, 3},
		"the budget": {byParam, map[string]string{url: items("a"), url + "&p=2": items("b")}, 2,
			[]string{"0 delivered", "1 delivered spent"}, 2},
		"a first page without rows": {byParam, map[string]string{url: "<p>"}, 10,
			[]string{"0 errored no_rows last"}, 1},
		"links to the last": {byLink,
			map[string]string{url: items("a") + link("/m"), "http://a.test/m": items("b")}, 10,
			[]string{"0 delivered", "1 delivered last"}, 2},
		"links in a circle": {byLink,
			map[string]string{url: items("a") + link("/m"),
				"http://a.test/m": items("b") + link(url+"#x")}, 10,
			[]string{"0 delivered", "1 delivered last"}, 2},
		"a link to another host": {byLink,
			map[string]string{url: items("a") + link("http://b.test/"),
				"http://b.test/": items("b")}, 10,
			[]string{"0 delivered", "1 delivered last"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, paged(c.pagination), nil)
				defer stop()
				for address, body := range c.web {
					if status, err := strconv.Atoi(body); err == nil {
						r.web.fails(address, -1,
							web.Failure{Code: fault.PageStatus, Status: status,
								Retry: status == 500})
						continue
					}
					r.web.page(address, body)
				}
				task := r.task(0, url)
				task.Budget = c.budget
				r.send(task)
				pages := r.pages(len(c.want))
				for i, p := range pages {
					if got := shorthand(p); got != c.want[i] {
						t.Errorf("page %d is %q, want %q", i, got, c.want[i])
					}
					if going := !p.Last; going != (p.Next != nil) {
						t.Errorf("page %d: last %v, next %+v", i, p.Last, p.Next)
					}
					if p.URLHash == 0 && p.Outcome == model.Delivered {
						t.Errorf("page %d has no hash", i)
					}
				}
				r.nothingMore()
				asked := slices.DeleteFunc(slices.Clone(r.web.asked),
					func(at string) bool { return strings.HasSuffix(at, "/robots.txt") })
				if len(asked) != c.asked {
					t.Errorf("asked for %q, want %d pages", asked, c.asked)
				}
				if c := r.f.Counts(); c.Open != 0 {
					t.Errorf("%d tasks are still open", c.Open)
				}
			})
		})
	}
}

// A chain dispatched in parts makes the same pages as an undivided one.
func TestContinuation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, paged(model.Pagination{Type: model.URLPageParam, Param: "p"}), nil)
		defer stop()
		const url = "http://a.test/"
		r.web.page(url, items("0"))
		for n := 2; n <= 8; n++ {
			r.web.page(fmt.Sprintf("%s?p=%d", url, n), items(fmt.Sprint(n)))
		}
		r.web.page(url+"?p=9", items("2", "0")) // rows of the chain's first pages
		var from *model.Continuation
		var got []string
		for last := false; !last && len(got) < 20; {
			task := r.task(0, url)
			task.Budget, task.From = 2, from
			r.send(task)
			for spent := false; !spent && !last; {
				p := r.pages(1)[0]
				got = append(got, shorthand(p))
				from, spent, last = p.Next, p.Spent, p.Last
			}
		}
		want := []string{"0 delivered", "1 delivered spent", "2 delivered", "3 delivered spent",
			"4 delivered",
			"5 delivered spent", "6 delivered", "7 delivered spent", "8 empty last"}
		if !slices.Equal(got, want) {
			t.Errorf("pages are %q", got)
		}
	})
}

func TestRedirects(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*rig)
		want    string
		final   string
	}{
		"to another host": {func(r *rig) { r.web.redirect("http://a.test/", "http://b.test/") },
			"0 delivered last", "http://b.test/"},
		"on the same host": {func(r *rig) { r.web.redirect("http://a.test/", "http://a.test/x") },
			"0 delivered last",
			"http://a.test/x"},
		"in a circle": {func(r *rig) {
			r.web.redirect("http://a.test/", "http://b.test/")
			r.web.redirect("http://b.test/", "http://a.test/")
		}, "0 errored too_many_redirects last", ""},
		"where robots forbid": {func(r *rig) {
			r.web.redirect("http://a.test/", "http://b.test/")
			r.web.forbid["http://b.test/"] = true
		}, "0 errored robots_forbidden last", ""},
	} {
		for _, rate := range []float64{0, 1} {
			t.Run(fmt.Sprintf("%s, rate %v", name, rate), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r, stop := start(t, 1, title, func(r *rig, config *Config) {
						config.Pace = Pace{Rate: rate, Connections: 1}
						c.prepare(r)
					})
					defer stop()
					r.send(r.task(0, "http://a.test/"))
					p := r.pages(1)[0]
					if got := shorthand(p); got != c.want || p.Final != c.final {
						t.Errorf("page is %q at %q, want %q at %q", got, p.Final, c.want, c.final)
					}
					r.checkSpacing(rate)
				})
			})
		}
	}
}

// checkSpacing checks the spacing of every host's starts, including robots.txt and redirects.
func (r *rig) checkSpacing(rate float64) {
	r.t.Helper()
	r.web.mu.Lock()
	defer r.web.mu.Unlock()
	for host, starts := range r.web.starts {
		for i := 1; i < len(starts) && rate > 0; i++ {
			if gap := time.Duration(starts[i] - starts[i-1]); gap < time.Duration(
				float64(time.Second)/rate) {
				r.t.Errorf("%s: start %d came %v after the last", host, i, gap)
			}
		}
	}
}

func TestHostsAreAskedPolitely(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 1, Connections: 2}
			r.web.latency = 1300 * time.Millisecond
			r.web.robots["b.test"] = 5 * time.Second
			r.web.fails("http://a.test/3", 2,
				web.Failure{Code: fault.PageStatus, Status: 503, Retry: true})
			r.web.redirect("http://a.test/4", "http://b.test/4")
			r.web.redirect("http://a.test/5", "http://a.test/5b")
		})
		defer stop()
		for seq := range 20 {
			r.send(r.task(seq, fmt.Sprintf("http://%c.test/%d", 'a'+seq%2, seq)))
		}
		r.pages(20)
		r.checkSpacing(1)
		starts := r.web.startsAt("b.test")
		for i := 2; i < len(starts); i++ {
			if gap := time.Duration(starts[i] - starts[i-1]); gap < 5*time.Second {
				t.Errorf("b.test: start %d came %v after the last", i, gap)
			}
		}
	})
}

// Pages that robots.txt forbids are not requested, so they do not use the host's pace.
func TestForbiddenPagesDoNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.01, Connections: 2}
			for seq := range 50 {
				r.web.forbid[fmt.Sprintf("http://a.test/%d", seq)] = true
			}
		})
		defer stop()
		began := time.Now()
		for seq := range 50 {
			r.send(r.task(seq, fmt.Sprintf("http://a.test/%d", seq)))
		}
		r.pages(50)
		if took := time.Since(began); took > 100*time.Second {
			t.Errorf("took %v: more than the wait after robots.txt", took)
		}
	})
}

// While too many bytes are held nothing starts. Starts resume once pages are published.
func TestHeldBytesStopStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.MaxBytes, config.Workers = 1, 1
			config.Log = gatedLog{r.memory, gate}
		})
		defer stop()
		r.send(r.task(0, "http://a.test/0"), r.task(1, "http://a.test/1"))
		pass(time.Hour)
		if n := len(r.web.startsAt("a.test")); n != 2 { // robots.txt and one page
			t.Errorf("%d requests while a page is not published", n)
		}
		close(gate)
		r.pages(2)
	})
}

// gatedLog publishes no page until the gate is opened.
type gatedLog struct {
	stream.Log
	gate chan struct{}
}

func (l gatedLog) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	select {
	case <-l.gate:
		return l.Log.Publish(ctx, topic, partition, records...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

package fetcher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var contactsRecipe = model.Recipe{Endpoint: model.WebsiteContacts}

// startContacts runs a fetcher for a run of website contacts. At a.test is a home page with links
// to two more pages.
func startContacts(t *testing.T, change func(*rig, *Config)) (*rig, *orders, func()) {
	t.Helper()
	return startOrdered(t, contactsRecipe, func(r *rig, config *Config) {
		endpoint, _ := model.EndpointOf(model.WebsiteContacts)
		r.control.jobs[jobID] = &client.Job{ID: jobID, State: model.Running,
			Charge: endpoint.Charge}
		config.Pace = Pace{Rate: 1, Connections: 2}
		r.site("a.test")
		if change != nil {
			change(r, config)
		}
	})
}

// site makes a website whose second subpage has the e-mail address.
func (r *rig) site(host string) {
	prose := strings.Repeat("<p>We have sold bread and cakes here since 1950.</p>", 10)
	r.web.page("http://"+host+"/",
		prose+`<a href="/contact">Contact</a> <a href="/imprint">Imprint</a>`)
	r.web.page("http://"+host+"/contact", prose+"<form></form>")
	r.web.page("http://"+host+"/imprint", prose+"<p>Mail: info@"+host+"</p>")
}

// jobLike makes a run like the rig's; each number gives another one.
func (r *rig) jobLike(number int) ids.ID {
	job := ids.ID{10: byte(number), 11: 9}
	r.control.change(func() {
		r.control.jobs[job] = &client.Job{ID: job, State: model.Running,
			Charge: r.control.jobs[jobID].Charge}
	})
	return job
}

// status returns the status and the e-mail address of a contacts row.
func status(t *testing.T, p *model.Page) string {
	t.Helper()
	if p.Outcome != model.Delivered || len(p.Rows) != 1 || !p.Last {
		t.Fatalf("page is %+v", p)
	}
	var row struct{ Website, Email, Status string }
	if err := json.Unmarshal(p.Rows[0], &row); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(row.Status + " " + row.Email)
}

func TestUnitOfSeveralPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startContacts(t, nil)
		defer stop()
		begun := time.Now()
		r.send(r.task(7, "http://A.test"))
		p := r.pages(1)[0]
		if got := status(t, p); got != "EMAIL_FOUND info@a.test" {
			t.Errorf("row is %s", p.Rows)
		}
		if p.Unit != (model.Unit{Seq: 7}) || p.URL != "http://A.test" || p.Final != "" ||
			p.PriceRow != "plugin:websitecontacts" || p.Quantity != 2 ||
			len(p.Tries) != 3 || p.Status != 200 {
			t.Errorf("page is %+v", p)
		}
		// robots.txt, then each page a second later
		want := "[http://a.test/robots.txt http://a.test/ http://a.test/contact " +
			"http://a.test/imprint]"
		if got := fmt.Sprint(r.web.asked); got != want || time.Since(begun) != 3*time.Second {
			t.Errorf("asked %s in %v", got, time.Since(begun))
		}
		synctest.Wait()
		if c := r.f.Counts(); c.HeldBytes != 0 || c.Open != 0 || r.f.Counts().Timed != 0 {
			t.Errorf("kept: %+v, %d timed", c, r.f.Counts().Timed)
		}
	})
}

func TestUncharged(t *testing.T) {
	for name, c := range map[string]struct {
		url     string
		limited bool
		prepare func(*rig)
		want    string
		fetches int // without robots.txt
		seconds int // the most
	}{
		"over the limit": {limited: true, want: "DAILY_LIMIT_REACHED"},
		"a profile":      {url: "https://www.facebook.com/shop", want: "SOCIAL_PROFILE_ONLY"},
		"no name": {prepare: func(r *rig) {
			r.web.fails("http://a.test/", -1,
				web.Failure{Code: fault.PageDNS})
		},
			want: "SITE_UNREACHABLE", fetches: 1, seconds: 2},
		"no answer": {prepare: func(r *rig) {
			r.web.fails("http://a.test/", -1,
				web.Failure{Code: fault.PageConnect, Retry: true})
		},
			want: "SITE_UNREACHABLE", fetches: 3, seconds: 5},
		"robots forbid": {prepare: func(r *rig) { r.web.forbid["http://a.test/"] = true },
			want: "PAGE_NOT_READABLE"},
		"hangs": {prepare: func(r *rig) { r.web.latency = time.Minute },
			want: "SITE_UNREACHABLE", fetches: 1, seconds: 15},
		"throttles": {prepare: func(r *rig) {
			r.web.fails("http://a.test/", -1,
				web.Failure{Code: fault.PageStatus, Status: 429, Retry: true,
					RetryAfter: time.Hour})
		}, want: "PAGE_NOT_READABLE", fetches: 1, seconds: 16},
		"the contact pages hang": {prepare: func(r *rig) {
			hangs := func(ctx context.Context, _ web.Request) (*web.Page,
				error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			r.web.at("http://a.test/contact", hangs)
		}, want: "PAGE_NOT_READABLE", fetches: 2, seconds: 15},
		"the contact pages are down": {prepare: func(r *rig) {
			for _, url := range []string{"http://a.test/contact", "http://a.test/imprint"} {
				r.web.fails(url, -1,
					web.Failure{Code: fault.PageStatus, Status: 503, Retry: true})
			}
		}, want: "PAGE_NOT_READABLE", fetches: 3, seconds: 5},
		"one is missing, one is behind a wall": {prepare: func(r *rig) {
			r.web.fails("http://a.test/contact", -1,
				web.Failure{Code: fault.PageStatus, Status: 404})
			r.web.fails("http://a.test/imprint", -1,
				web.Failure{Code: fault.PageBlocked, Status: 404})
		}, want: "PAGE_NOT_READABLE", fetches: 3, seconds: 5},
		"crawl delay": {prepare: func(r *rig) { r.web.robots["a.test"] = 10 * time.Second },
			want: "PAGE_NOT_READABLE", fetches: 1, seconds: 16},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, _, stop := startContacts(t, func(r *rig, _ *Config) {
					if c.prepare != nil {
						c.prepare(r)
					}
				})
				defer stop()
				task := r.task(0, "http://a.test/")
				if task.Limited = c.limited; c.url != "" {
					task.URL = c.url
				}
				begun := time.Now()
				r.send(task)
				p := r.pages(1)[0]
				if got := status(t, p); got != c.want || p.PriceRow != "" || p.Quantity != 0 {
					t.Errorf("row is %s, charged %d × %q", p.Rows, p.Quantity, p.PriceRow)
				}
				fetches := 0
				for _, url := range r.web.asked {
					if !strings.HasSuffix(url, "/robots.txt") {
						fetches++
					}
				}
				if took := time.Since(begun); fetches != c.fetches ||
					took > time.Duration(c.seconds)*time.Second+hold.SweepEvery {
					t.Errorf("%d fetches in %v: %q", fetches, took, r.web.asked)
				}
				if (c.limited || c.url != "") && len(r.web.asked) > 0 {
					t.Errorf("asked %q", r.web.asked)
				}
			})
		})
	}
}

// Missing contact pages hide no address: the website is charged.
func TestMissingContactPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startContacts(t, func(r *rig, _ *Config) {
			for url, status := range map[string]int{"http://a.test/contact": 404,
				"http://a.test/imprint": 410} {
				r.web.fails(url, -1,
					web.Failure{Code: fault.PageStatus, Status: status})
			}
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		if p := r.pages(1)[0]; status(t, p) != "NO_EMAIL_PUBLISHED" || p.Quantity != 2 {
			t.Errorf("row is %s, charged %d", p.Rows, p.Quantity)
		}
	})
}

// A retry counts as one of the three fetches.
func TestRetriesCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startContacts(t, func(r *rig, _ *Config) {
			answer := r.web.answers["http://a.test/"]
			failed := false
			r.web.at("http://a.test/", func(ctx context.Context, req web.Request) (*web.Page,
				error) {
				if !failed {
					failed = true
					return nil, &web.Failure{Code: fault.PageConnect, Retry: true, Final: req.URL}
				}
				return answer(ctx, req)
			})
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		if p := r.pages(1)[0]; status(t, p) != "NO_EMAIL_PUBLISHED" || len(p.Tries) != 3 {
			t.Errorf("row is %s after %+v", p.Rows, p.Tries)
		}
	})
}

// Memory kept by waiting units never prevents them from finishing.
func TestKeptPagesDoNotBlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startContacts(t, func(r *rig, config *Config) {
			config.MaxBytes = 200
			for n := range 30 {
				r.site(fmt.Sprintf("s%d.test", n))
			}
		})
		defer stop()
		for n := range 30 {
			r.send(r.task(n, fmt.Sprintf("http://s%d.test/", n)))
		}
		for _, p := range r.pages(30) {
			if got := status(t, p); !strings.HasPrefix(got, "EMAIL_FOUND info@s") {
				t.Errorf("row is %s", p.Rows)
			}
		}
	})
}

// Memory kept by the waiting units of some customers never stops another customer's pages, and all
// units finish.
func TestKeptPagesStopNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const units, customers = 120, 6
		r, _, stop := startContacts(t, func(r *rig, config *Config) {
			config.MaxBytes = 6400                        // ten units keep more than this
			config.Pace = Pace{Rate: 0.2, Connections: 1} // they wait for this
			for n := range units {
				r.site(fmt.Sprintf("s%d.test", n))
			}
		})
		defer stop()
		for n := range units {
			task := r.task(n, fmt.Sprintf("http://s%d.test/", n))
			task.Customer, task.Job = fmt.Sprint("keeps-", n%customers), r.jobLike(n%customers)
			r.send(task)
		}
		pass(6 * time.Second) // robots.txt and the home page are read
		task := r.task(units, "http://a.test/")
		task.Customer, task.Job = "other", r.jobLike(customers)
		r.send(task)
		pass(6 * time.Second)
		if !slices.Contains(r.web.asked, "http://a.test/") {
			t.Error("the page of somebody else waits for what others keep")
		}
		r.pages(units + 1)
	})
}

// The fetcher that began a unit finishes it, even while its shard is released.
func TestReleaseFinishesAUnit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startContacts(t, nil)
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		pass(1500 * time.Millisecond) // the home page is read
		o.to(client.Leases{Release: onlyShard})
		if p := r.pages(1)[0]; status(t, p) != "EMAIL_FOUND info@a.test" || len(r.web.asked) != 4 {
			t.Errorf("row is %s, asked %q", p.Rows, r.web.asked)
		}
		pass(5 * time.Second)
		if holding(r.control) != "[]" {
			t.Errorf("holding %s", holding(r.control))
		}
	})
}

// If a run or a lease ends in the middle of a unit, nothing is left behind.
func TestUnitIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startContacts(t, nil)
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		pass(1500 * time.Millisecond)
		r.control.end(jobID)
		if p := r.pages(1)[0]; p.Outcome != model.Cancelled {
			t.Errorf("page is %+v", p)
		}
		if c := r.f.Counts(); c.HeldBytes != 0 && c.Open == 0 {
			t.Errorf("kept: %+v", c)
		}
	})
	bubble(t, func(t *testing.T) {
		r, o, stop := startContacts(t, nil)
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		pass(1500 * time.Millisecond)
		o.to(client.Leases{})
		pass(5 * time.Second)
		if c := r.f.Counts(); c.HeldBytes != 0 || c.Open != 0 {
			t.Errorf("kept: %+v", c)
		}
	})
}

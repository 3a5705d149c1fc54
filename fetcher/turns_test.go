package fetcher

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// CPU-heavy pages of one customer wait for each other. A later page of another customer waits for
// only one of them.
func TestCustomersTakeTurnsAtExtractions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var read []string
		busy := make(chan struct{})
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Extractions = 1
			config.Reading = func(p extract.Page) {
				mu.Lock()
				read = append(read, p.URL)
				first := len(read) == 1
				mu.Unlock()
				if first {
					<-busy
				}
			}
		})
		defer stop()
		send := func(seq int, customer, url string) {
			task := r.task(seq, url)
			task.Customer = customer
			r.send(task)
		}
		for i, host := range []string{"a", "b", "c", "d", "e", "f"} {
			send(i, "costly", "http://"+host+".costly/")
			synctest.Wait() // the first page's turn also compiles the recipe
		}
		send(6, "other", "http://a.other/")
		send(7, "other", "http://b.other/")
		synctest.Wait()
		close(busy)
		r.pages(8)
		var order []string
		for _, url := range read {
			order = append(order, strings.TrimSuffix(url[len("http://a."):], "/"))
		}
		if want := []string{"costly", "other", "costly", "other", "costly", "costly", "costly",
			"costly"}; !slices.Equal(order, want) {
			t.Errorf("pages of these customers were read: %v, want %v", order, want)
		}
	})
}

// A page that takes long to read pauses for a page of another customer.
func TestLongExtractionsLetOthersGoFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		busy := make(chan struct{})
		recipe := model.Recipe{Type: model.SingleProduct,
			Fields: []model.Field{{Name: "x", Selector: "div:has(i)", Kind: model.Text}}}
		r, stop := start(t, 1, recipe, func(r *rig, config *Config) {
			r.web.page("http://a.costly/",
				strings.Repeat("<div>", 400)+strings.Repeat("<p>a</p>", 20_000))
			r.web.page("http://a.other/", "<div><i>x</i></div>")
			config.Extractions = 1
			config.Reading = func(p extract.Page) {
				if p.URL == "http://a.costly/" {
					<-busy
				}
			}
		})
		defer stop()
		for seq, customer := range []string{"costly", "other"} {
			task := r.task(seq, "http://a."+customer+"/")
			task.Customer = customer
			r.send(task)
			synctest.Wait()
		}
		close(busy)
		if first := r.pages(1)[0]; first.URL != "http://a.other/" {
			t.Errorf("%s was read to its end first", first.URL)
		}
		if last := r.pages(1)[0]; last.Code != string(fault.PageNoRows) {
			t.Errorf("the page that takes long: %+v", last)
		}
	})
}

// While expensive pages of one customer are read, other customers' requests go on. That holds at
// any host, also at those of these pages, and even while they hold all allowed bytes.
func TestCostlyPagesStopNobody(t *testing.T) {
	for name, maxBytes := range map[string]int64{"many": 1 << 20, "large": 400} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				busy := make(chan struct{})
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					config.Extractions, config.Workers, config.MaxBytes = 1, 36, maxBytes
					config.Pace = Pace{Rate: 1, Connections: 1}
					config.Reading = func(p extract.Page) {
						if strings.Contains(p.URL, "costly") {
							<-busy
						}
					}
				})
				defer stop()
				const costly = 40
				for seq := range costly {
					task := r.task(seq, fmt.Sprintf("http://host-%d.test/costly", seq%20))
					task.Customer = "costly"
					r.send(task)
				}
				pass(time.Hour)
				job := ids.ID{11: 9}
				r.control.change(func() {
					r.control.jobs[job] = &client.Job{ID: job, State: model.Running}
				})
				others := []string{"http://host-1.test/", "http://host-2.test/", "http://a.other/"}
				for seq, url := range others {
					task := r.task(costly+seq, url)
					task.Customer, task.Job = "other", job
					r.send(task)
				}
				pass(time.Minute)
				for _, url := range others {
					if !slices.Contains(r.web.asked, url) {
						t.Errorf("%s is not asked for while a page of somebody else is read", url)
					}
				}
				close(busy)
				r.pages(costly + len(others))
			})
		})
	}
}

// The extraction of a unit with a failed page reads its other pages without holding the host.
func TestReadingOfFailuresKeepsNoHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		busy := make(chan struct{})
		r, _, stop := startContacts(t, func(r *rig, config *Config) {
			r.web.fails("http://a.test/gone", -1, web.Failure{Code: fault.PageConnect})
			config.Extractions, config.Pace = 2, Pace{Rate: 1, Connections: 1}
			config.Reading = func(p extract.Page) {
				if p.Code != "" {
					<-busy
				}
			}
		})
		defer stop()
		r.send(r.task(0, "http://a.test/gone"))
		pass(time.Minute)
		r.send(r.task(1, "http://a.test/"))
		pass(time.Minute)
		if !slices.Contains(r.web.asked, "http://a.test/") {
			t.Errorf("while a failure is read only %v is asked for", r.web.asked)
		}
		close(busy)
		r.pages(2)
	})
}

// Many quick pages of one customer wait for about one of another's expensive pages, not for one
// each.
func TestQuickPagesWaitForOneCostlyPage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const costs, costly, quick = time.Minute, 100, 20
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Extractions = 2
			config.Reading = func(p extract.Page) {
				if strings.Contains(p.URL, "costly") {
					pass(costs)
				}
			}
		})
		defer stop()
		send := func(seq int, customer string) {
			task := r.task(seq, fmt.Sprintf("http://host-%d.%s/", seq, customer))
			task.Customer = customer
			r.send(task)
		}
		for seq := range costly {
			send(seq, "costly")
		}
		pass(costs / 2)
		begun := time.Now()
		for seq := range quick {
			send(costly+seq, "quick")
		}
		left := costly + quick
		for delivered := 0; delivered < quick; left-- {
			if strings.Contains(r.pages(1)[0].URL, "quick") {
				delivered++
			}
		}
		if took := time.Since(begun); took > 2*costs {
			t.Errorf("%d quick pages took %v, beside some that take %v each", quick, took, costs)
		}
		r.pages(left)
	})
}

package fetcher

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// unreadRobots is a web whose robots.txt fails some times. Failures are cached for a while.
type unreadRobots struct {
	*fakeWeb
	failures int
	until    time.Time
}

const robotsMemory = 15 * time.Second

// wait returns how long the newest failure is still cached.
func (w *unreadRobots) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, time.Until(w.until))
}

// fail says whether this caller's request is sent and fails. Callers of one moment share a request:
// the others find its failure.
func (w *unreadRobots) fail() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures == 0 || time.Now().Before(w.until) {
		return false
	}
	w.failures--
	w.until = time.Now().Add(robotsMemory)
	return true
}

func (w *unreadRobots) KnowsRules(url string) bool {
	return w.wait() > 0 || w.fakeWeb.KnowsRules(url)
}

func (w *unreadRobots) CheckRules(ctx context.Context, caller, url string) (time.Duration,
	error) {
	if w.fail() {
		w.start("http://" + address.AuthorityOf(url) + "/robots.txt")
	} else if w.wait() == 0 {
		return w.fakeWeb.CheckRules(ctx, caller, url)
	}
	return 0, &web.Failure{Code: fault.PageRobots, Final: url, Retry: true, Wait: w.wait()}
}

// A redirect's target gets its robots.txt delay between requests, whoever requests it first.
func TestDelayBehindARedirect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, nil)
		defer stop()
		r.web.robots["b.test"] = 10 * time.Second
		r.web.known["a.test"], r.web.known["b.test"] = true, true
		r.web.redirect("http://a.test/", "http://b.test/0")
		r.send(r.task(0, "http://a.test/"))
		r.pages(1)
		r.send(r.task(1, "http://b.test/1"))
		r.pages(1)
		if at := r.web.startsAt("b.test"); len(at) != 2 || at[1]-at[0] < int64(10*time.Second) {
			t.Errorf("starts at %v", at)
		}
	})
}

// A page whose robots.txt could not be read waits for the next request of that file. All pages of
// the host share each request, and each page gets three tries by each tier.
func TestUnreadRobots(t *testing.T) {
	for name, c := range map[string]struct {
		failures, tiers int
		want            string
		robots, tries   int
	}{
		"once":        {1, 1, "0 delivered last", 2, 2},
		"twice":       {2, 1, "0 delivered last", 3, 3},
		"stays":       {99, 1, "0 errored robots_forbidden last", 3, 3},
		"dearer tier": {3, 2, "0 delivered last", 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				tiers := model.TiersOf([]model.Tier{model.Plain, model.Super}[:c.tiers]...)
				site := &unreadRobots{failures: c.failures}
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					r.web.tiers = tiers
					site.fakeWeb = r.web
					config.Web = site
				})
				defer stop()
				const pages = 5
				for seq := range pages {
					task := r.task(seq, "http://a.test/")
					task.Tiers = tiers
					r.send(task)
				}
				for _, p := range r.pages(pages) {
					if shorthand(p) != c.want || len(p.Tries) != c.tries {
						t.Errorf("seq %d is %s after %d tries", p.Unit.Seq, shorthand(p),
							len(p.Tries))
					}
				}
				if n := r.count("http://a.test/robots.txt"); n != c.robots {
					t.Errorf("%d requests for robots.txt", n)
				}
			})
		})
	}
}

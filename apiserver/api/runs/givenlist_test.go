package runs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// givenList is what a caller can know about a list.
type givenList struct {
	*rig
	random  *rand.Rand
	scraper string
	given   []string // the list last given, in the order in which force takes it
	charged map[string]bool
	runs    int
}

// TestGivenListsRunAgain: whatever ran before, a run without addresses takes the list last given,
// all of it or what was never charged. An estimate counts the same list.
func TestGivenListsRunAgain(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 10_000_000})
	for seed := range uint64(3) {
		l := &givenList{rig: r, random: rand.New(rand.NewPCG(seed, 1)), charged: map[string]bool{}}
		l.given = l.some()
		first := r.list(t, r.body("name", fmt.Sprint("list ", seed), "urls", l.given))
		l.scraper = first.Text("scraperId")
		l.end(t, first, l.given)
		for range 30 {
			l.runAgain(t)
			r.Run(t, apitest.Scenario{Name: "estimate", As: apitest.User, Status: 200,
				Do:  "POST /api/scraper/" + l.scraper + "/estimate",
				Has: map[string]any{"links": len(l.given)}})
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// some picks some addresses, newer ones in later runs.
func (l *givenList) some() []string {
	var urls []string
	for _, n := range l.random.Perm(6)[:1+l.random.IntN(4)] {
		urls = append(urls, fmt.Sprint("https://shop.test/", l.runs/2+n))
	}
	return urls
}

// runAgain launches a run with or without addresses, and expects those that it takes.
func (l *givenList) runAgain(t *testing.T) {
	t.Helper()
	l.Clock.Advance(time.Minute)
	mode := []string{"rerun", "force"}[l.random.IntN(2)]
	given, body := l.given, fmt.Sprintf(`{"scraperId":%q,%q:true}`, l.scraper, mode)
	call := apitest.Scenario{As: apitest.User, Do: listPath, Body: body}
	switch l.random.IntN(4) {
	case 0:
		given = l.some()
		call.Body = l.body("groupId", nil, "name", nil, "itemsConfig", nil, "urls", given,
			"scraperId", l.scraper, mode, true)
	case 1:
		given = l.some()
		call.Do += "?scraperId=" + l.scraper + "&" + mode + "=true"
		call.Body, call.Header = strings.Join(given, "\n"), media("text/uri-list")
	}
	var takes, behind []string
	for _, url := range given {
		if mode == "rerun" && l.charged[url] {
			behind = append(behind, url)
		} else {
			takes = append(takes, url)
		}
	}
	run := l.Call(t, call)
	if len(takes) == 0 {
		if run.Status != 409 {
			t.Errorf("%s %s: %s", call.Do, call.Body, run.Body)
		}
		return
	}
	if run.Status != 200 {
		t.Fatalf("%s %s: %s", call.Do, call.Body, run.Body)
	}
	if call.Body != body {
		l.given = slices.Concat(takes, behind)
	}
	l.end(t, run, takes)
}

// end ends a run over these addresses, of which it delivers some.
func (l *givenList) end(t *testing.T, run apitest.Answer, takes []string) {
	t.Helper()
	l.runs++
	if got := l.urls(t, run.Text("jobId")); !slices.Equal(got, takes) {
		t.Errorf("the run takes %q, want %q", got, takes)
		return
	}
	var good []uint32
	for seq, url := range takes {
		if l.random.IntN(3) == 0 {
			good, l.charged[url] = append(good, uint32(seq)), true
		}
	}
	l.finish(t, run.Text("jobId"), len(takes), good...)
}

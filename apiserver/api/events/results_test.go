package events_test

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// A completed merge or match is told in addition to its run's state, and a failed one is not. A
// stream that comes back is told them even if the runs have left the state.
func TestResultsAreTold(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.Reader, "")
	begun := s.begin()
	for i, c := range []struct {
		made                 client.Made
		kind                 string
		event, other, number string
	}{
		{client.Enriched, work.Merge, "group.merge.completed", "enrichedGroupId", "mergedItems"},
		{client.Matched, work.Match, "match.completed", "matchedGroupId", "matchedItems"},
	} {
		sibling := ids.ID{0xa, 5, byte(i)}
		for _, message := range []string{"none", ""} {
			job := r.IDs.New()
			r.Client.Must(t, client.BeginResult{Job: job, Customer: "alice", Group: group,
				Made: c.made, Kind: c.kind, NewGroup: sibling, NewScraper: ids.ID{0xa, 6, byte(i)}})
			r.Client.Must(t, client.EndImport{Job: job, Items: 7, Message: message})
			told := 0
			for _, f := range s.until(`job.status .*"state":"(SUCCESS|FAILED)"|^notification`) {
				told += strings.Count(f.event, ".completed")
			}
			if message != "" && told != 0 {
				t.Errorf("%s: one that failed is told as complete", c.event)
			}
			if message == "" && told == 0 {
				frames := s.until(c.event)
				if got := frames[len(frames)-1].data; got != `{"groupId":"`+group.String()+
					`","`+c.other+`":"`+sibling.String()+`","jobId":"`+job.String()+
					`","`+c.number+`":7}` {
					t.Error(got)
				}
			}
		}
	}
	r.Client.Archive(t, r.store, 0)
	back, told := r.open(t, apitest.Reader, fmt.Sprint("?lastEventId=", begun)), map[string]int{}
	for last := false; !last; {
		f, open := back.next()
		if told[f.event]++; !open {
			t.Fatalf("the stream ended after %v", told)
		}
		last = f.id != 0
	}
	if told["job.status"] != 4 || told["group.merge.completed"] != 1 ||
		told["match.completed"] != 1 {
		t.Errorf("a stream that came back was told %v", told)
	}
}

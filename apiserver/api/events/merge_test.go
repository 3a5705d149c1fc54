package events_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// A merge that is complete is told beside its run's state, and one that failed is not.
func TestMergesAreTold(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.Reader, "")
	s.begin()
	for _, message := range []string{"none", ""} {
		job := r.IDs.New()
		r.Client.Must(t, client.BeginResult{Job: job, Customer: "alice", Group: group,
			Made: client.Enriched, Kind: work.Merge, NewGroup: ids.ID{0xa, 5},
			NewScraper: ids.ID{0xa, 6}})
		r.Client.Must(t, client.EndImport{Job: job, Items: 7, Message: message})
		told := 0
		for _, f := range s.until(`job.status .*"state":"(SUCCESS|FAILED)"|^notification`) {
			told += strings.Count(f.event, "group.merge.completed")
		}
		if message != "" && told != 0 {
			t.Error("a merge that failed is told as complete")
		}
		if message == "" && told == 0 {
			frames := s.until("group.merge.completed")
			if got := frames[len(frames)-1].data; got != `{"groupId":"`+group.String()+
				`","enrichedGroupId":"`+(ids.ID{0xa, 5}).String()+`","jobId":"`+job.String()+
				`","mergedItems":7}` {
				t.Error(got)
			}
		}
	}
}

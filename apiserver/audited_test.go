package apiserver_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment"
)

// An admin who acts for alice calls every route that names something of hers. Each call that writes
// is in the audit trail.
func TestWritesForACustomerAreTold(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store), apitest.WithBlobs(t),
		func(config *apiserver.Config) {
			config.Payments = struct{ payment.Provider }{} // no call asks it for anything
		})
	th, others := share(t, s, store), owned(t, s)
	fill := func(call string) string {
		for name, id := range others {
			call = strings.ReplaceAll(call, name, id)
		}
		return th.fill(call)
	}
	// These read, wait for a page, or find nothing to do here.
	exempt := regexp.MustCompile("^GET|preview-delete|estimate|scraper-simple|release$|" +
		"/{scraper}/stop$|/group/{group}/run$")
	calls := append(named(t), ofNoGroup(t)...)
	turns := strings.NewReplacer(reExtract, "X", "DELETE", "Y") // what others need goes last
	slices.SortFunc(calls, func(a, b string) int {
		return strings.Compare(turns.Replace(a), turns.Replace(b))
	})
	wrote := 0
	for n, call := range slices.Compact(calls) {
		if exempt.MatchString(call) {
			continue
		}
		before := s.Client.View().AuditHead().Number
		method, rest, _ := strings.Cut(fill(call), " ")
		path, body, _ := strings.Cut(rest, " ")
		a := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: method + " " + path, Body: body,
			Header: map[string]string{"X-Customer-Ref": "alice", "Idempotency-Key": fmt.Sprint(n)}})
		s.Clock.Advance(time.Second)
		if a.Status >= 300 {
			continue
		}
		wrote++
		if s.Client.View().AuditHead().Number == before {
			t.Errorf("%s: %d, and the audit trail has nothing of it", call, a.Status)
		}
	}
	if wrote < 20 {
		t.Errorf("only %d calls wrote", wrote)
	}
}

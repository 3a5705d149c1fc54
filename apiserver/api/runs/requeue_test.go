package runs_test

import (
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// An admin reruns the failed links of a customer's run, as the customer's run.
func TestRequeue(t *testing.T) {
	r := start(t)
	r.topUp(t, 10_000)
	urls := []string{"https://shop.test/0", "https://shop.test/1", "https://shop.test/2"}
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: listPath, Body: r.body("urls", urls)})
	path := "POST /api/admin/jobs/" + run.Text("jobId") + "/requeue"
	r.Run(t, apitest.Scenario{Name: "not ended", As: apitest.Admin, Do: path, Status: 400,
		Code: "scraper_already_running"})
	r.finish(t, run.Text("jobId"), 3, 1)
	for _, as := range []string{apitest.User, apitest.SignIn} {
		r.Run(t, apitest.Scenario{Name: "no admin", As: as, Do: path, Status: 401})
	}
	r.Run(t, apitest.Scenario{Name: "unknown", As: apitest.Admin, Status: 400,
		Do: "POST /api/admin/jobs/0123456789abcdef01234567/requeue", Code: "job_not_found"})
	keyed := apitest.Scenario{As: apitest.Admin, Do: path + "?maxChargeMicros=300",
		Header: key("once")}
	again := r.Call(t, keyed)
	if again.Status != 200 || again.JSON.(map[string]any)["linksQueued"] != float64(2) {
		t.Fatalf("%s", again.Body)
	}
	if got := r.urls(t, again.Text("jobId")); !slices.Equal(got, []string{urls[0], urls[2]}) {
		t.Errorf("its list is %q", got)
	}
	job := r.Client.View().OpenJobsOfCustomer("alice")[0]
	if job.Customer != "alice" || !job.Rest || job.MaxCharge == nil || *job.MaxCharge != 300 {
		t.Errorf("%+v", job)
	}
	r.Run(t, apitest.Scenario{Name: "while it runs", As: apitest.Admin, Do: path, Status: 400,
		Code: "scraper_already_running"})
	if same := r.Call(t, keyed); string(same.Body) != string(again.Body) {
		t.Errorf("by its key it answers %s, and %s before", same.Body, again.Body)
	}
	r.finish(t, again.Text("jobId"), 2, 0, 1)
	if same := r.Call(t, keyed); string(same.Body) != string(again.Body) {
		t.Errorf("by its key it answers %s, and %s before", same.Body, again.Body)
	}
	r.Run(t, apitest.Scenario{Name: "nothing failed", As: apitest.Admin, Status: 409,
		Do: "POST /api/admin/jobs/" + again.Text("jobId") + "/requeue", Code: "list_already_run"})
	r.Client.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
	r.Run(t, apitest.Scenario{Name: "blocked", As: apitest.Admin, Do: path, Status: 403,
		Code: "customer_blocked"})
	r.nothingLeft(t)
}

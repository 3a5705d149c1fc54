package jobs_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

const unknownRun = "0123456789abcdef01234567"

func TestReleaseRefuses(t *testing.T) {
	s := apitest.Start(t)
	do := "POST /api/scraper-job-status/" + unknownRun + "/release"
	s.Run(t,
		apitest.Scenario{Name: "missing", As: apitest.User, Do: do, Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "by a reader", As: apitest.Reader, Do: do, Status: 403,
			Code: "scope_rejected"})
}

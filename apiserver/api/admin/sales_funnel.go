package admin

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

// SalesFunnel counts customers by the week in which they signed up (decision 42).
type SalesFunnel struct {
	Weeks []SalesWeek `json:"weeks" doc:"Newest first, without gaps, back to the week of the oldest customer"`
}

// SalesWeek counts the customers of one week, and those who have taken further steps since.
type SalesWeek struct {
	Week          string `json:"week" doc:"ISO 8601 week, by UTC"`
	StartsOn      string `json:"startsOn" format:"date" doc:"Monday of the week"`
	SignedUp      int    `json:"signedUp"`
	MadeScraper   int    `json:"madeScraper"`
	LaunchedRun   int    `json:"launchedRun" doc:"Customers who launched a run; samples and previews do not count"`
	ToppedUp      int    `json:"toppedUp" doc:"Customers who paid in through the payment provider"`
	ToppedUpTwice int    `json:"toppedUpTwice"`
}

// add counts a customer that has taken the given steps.
func (w *SalesWeek) add(steps client.Steps) {
	count := func(of *int, did bool) {
		if did {
			*of++
		}
	}
	w.SignedUp++
	count(&w.MadeScraper, steps.Scraper)
	count(&w.LaunchedRun, steps.Run)
	count(&w.ToppedUp, steps.TopUps > 0)
	count(&w.ToppedUpTwice, steps.TopUps > 1)
}

// weekOf numbers weeks from the first week of 1970, whose Monday is in 1969.
func weekOf(millis int64) int64 { return (millis/day + 3) / 7 }

// newSalesWeek is an empty week with a given number.
func newSalesWeek(number int64) SalesWeek {
	monday := time.UnixMilli((number*7 - 3) * day).UTC()
	year, week := monday.ISOWeek()
	return SalesWeek{Week: fmt.Sprintf("%04d-W%02d", year, week),
		StartsOn: monday.Format(time.DateOnly)}
}

type salesFunnelRequest struct {
	Weeks int `query:"weeks" default:"104" min:"1" max:"104" doc:"How many of the newest weeks, this one included"`
}

// salesFunnel is GET /api/admin/sales-funnel.
func (r Resource) salesFunnel() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_sales_funnel", Routes: operation.Routes("GET /api/admin/sales-funnel"),
		Group: group, Summary: "Counts customers by week of sign-up, and by how far they got",
		Description: "Things that a customer has since deleted still count, and so do removed " +
			"customers. A refunded top-up counts; an operator's adjustment does not.",
		Access: auth.Admin, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, in *salesFunnelRequest) (SalesFunnel,
		error) {
		now := weekOf(r.Clock.Now().UnixMilli())
		weeks, used := make([]SalesWeek, in.Weeks), 0
		for i := range weeks {
			weeks[i] = newSalesWeek(now - int64(i))
		}
		from.View.EachCustomer(func(c *client.Customer) bool {
			// the state time may be ahead of this clock
			ago := int(max(now-weekOf(c.CreatedAt), 0))
			if ago < len(weeks) {
				weeks[ago].add(from.View.Steps(c))
			}
			used = max(used, min(ago+1, len(weeks)))
			return true
		})
		return SalesFunnel{Weeks: weeks[:used]}, nil
	})
}

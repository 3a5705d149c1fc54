package admin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/reconcile"
	"shoal.dev/shoal/pkg/fault"
)

// settling is how long the provider may take to report a movement.
const settling = 5 * time.Minute

// Reconciliation compares the ledger with the payment provider, and with itself.
type Reconciliation struct {
	ProviderAsked   bool               `json:"providerAsked" doc:"False: nobody takes payments for this server, and only the ledger was held against itself"`
	Days            int                `json:"days" doc:"For which the provider was asked, back from now"`
	Payments        int                `json:"payments" doc:"Of this cluster, at the provider"`
	Reversals       int                `json:"reversals" doc:"Refunds and disputes of those"`
	Wallets         int                `json:"wallets"`
	Entries         uint64             `json:"entries" doc:"Of all wallets, sealed"`
	Differences     []LedgerDifference `json:"differences" doc:"At most 1,000"`
	MoreDifferences int                `json:"moreDifferences" doc:"Beyond those that are listed"`
}

// LedgerDifference is one difference that a reconciliation found.
type LedgerDifference struct {
	Kind        string `json:"kind" enum:"PAYMENT_MISSING,PAYMENT_UNKNOWN,PAYMENT_AMOUNT,REVERSAL_MISSING,REVERSAL_UNKNOWN,REVERSAL_AMOUNT,CLEARING,UNMATCHED,BOOKS,FREE_BOOKS,BALANCE,PREFIX_SUM"`
	CustomerRef string `json:"customerRef" doc:"Empty: it is of no one customer"`
	Subject     string `json:"subject" doc:"The provider's id of the payment, refund or dispute, or that of the ledger entry; empty: of neither"`
	HereMicros  int64  `json:"hereMicros" doc:"Micros, millionths of a euro; free requests in FREE_BOOKS"`
	WantMicros  int64  `json:"wantMicros" doc:"Micros, millionths of a euro, by what it is held against"`
}

type reconcileRequest struct {
	Days int `query:"days" default:"31" min:"1" max:"400" doc:"For which the provider is asked, back from now"`
}

// reconcile is POST /api/admin/billing/reconcile. It is costly, but changes nothing.
func (r Resource) reconcile() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_reconcile", Routes: operation.Routes("POST /api/admin/billing/reconcile"),
		Group:   group,
		Summary: "Holds the ledger against the payment provider, and against itself",
		Description: "Nothing is changed. Payments, refunds and disputes are compared with the " +
			"provider's balance. All accounts have to sum to zero, and each entry stands at the " +
			"sum of those before it. What moved in the last five minutes is left out. What has " +
			"to be done about each kind of difference is in the operations manual.",
		Access: auth.Admin, Rate: limits.General, Timeout: 10 * time.Minute,
		Errors: []fault.Code{fault.ProviderFailed, fault.LimitReached},
	}, func(ctx context.Context, _ *operation.Caller, in *reconcileRequest) (Reconciliation,
		error) {
		to := r.Clock.Now().Add(-settling)
		report, err := reconcile.Run(ctx, r.Client, r.History, r.Accounts,
			to.Add(-time.Duration(in.Days)*24*time.Hour), to)
		if err != nil {
			return Reconciliation{}, err
		}
		answer := Reconciliation{ProviderAsked: report.Provider, Days: in.Days,
			Payments: report.Payments, Reversals: report.Reversals, Wallets: report.Wallets,
			Entries: report.Entries, Differences: []LedgerDifference{},
			MoreDifferences: report.More}
		for _, d := range report.Differences {
			answer.Differences = append(answer.Differences, LedgerDifference{Kind: string(d.Kind),
				CustomerRef: d.Customer, Subject: d.Subject, HereMicros: d.Here,
				WantMicros: d.Want})
		}
		return answer, nil
	})
}

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
	ProviderAsked   bool               `json:"providerAsked" doc:"False: this server has no payment provider, and only the ledger itself was checked"`
	Days            int                `json:"days" doc:"How many days back from now the provider was asked about"`
	Payments        int                `json:"payments" doc:"Payments of this cluster at the provider"`
	Reversals       int                `json:"reversals" doc:"Refunds and disputes of those payments"`
	Wallets         int                `json:"wallets"`
	Entries         uint64             `json:"entries" doc:"Sealed entries of all wallets"`
	Differences     []LedgerDifference `json:"differences" doc:"The first 1,000 at most"`
	MoreDifferences int                `json:"moreDifferences" doc:"How many more there are than listed"`
}

// LedgerDifference is one difference that a reconciliation found.
type LedgerDifference struct {
	Kind        string `json:"kind" enum:"PAYMENT_MISSING,PAYMENT_UNKNOWN,PAYMENT_AMOUNT,REVERSAL_MISSING,REVERSAL_UNKNOWN,REVERSAL_AMOUNT,CLEARING,UNMATCHED,BOOKS,FREE_BOOKS,BALANCE,PREFIX_SUM"`
	CustomerRef string `json:"customerRef" doc:"Empty: it belongs to no single customer"`
	Subject     string `json:"subject" doc:"Id of the payment, refund or dispute at the provider, or of the ledger entry; empty: neither"`
	HereMicros  int64  `json:"hereMicros" doc:"Amount in our ledger, in micros, millionths of a euro; in FREE_BOOKS, a number of free requests"`
	WantMicros  int64  `json:"wantMicros" doc:"Expected amount, in micros, millionths of a euro"`
}

type reconcileRequest struct {
	Days int `query:"days" default:"31" min:"1" max:"400" doc:"How many days back from now to ask the provider about"`
}

// reconcile is POST /api/admin/billing/reconcile. It is costly, but changes nothing.
func (r Resource) reconcile() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_reconcile", Routes: operation.Routes("POST /api/admin/billing/reconcile"),
		Group:   group,
		Summary: "Checks the ledger against the payment provider, and against itself",
		Description: "Nothing is changed. Payments, refunds and disputes are compared with the " +
			"provider's balance. All accounts must sum to zero, and each entry must equal the " +
			"sum of those before it. Movements of the last five minutes are left out. The " +
			"operations manual says what to do about each kind of difference.",
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

package wallet

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/price"
)

const (
	// askTime is how long the provider may take to make a session.
	askTime = 20 * time.Second
	// releaseTime is how long releasing the idempotency key of a failed call may take.
	releaseTime = 10 * time.Second
)

// TopUpInput is the amount of a top-up.
type TopUpInput struct {
	AmountCents int64 `json:"amountCents" required:"true" min:"500" max:"100000" doc:"5 to 1,000 EUR, in cents"`
}

// StartedTopUp tells where to pay a top-up.
type StartedTopUp struct {
	URL       string `json:"url" doc:"The checkout, at the payment provider"`
	SessionID string `json:"sessionId"`
}

// TopUpStatus is the state of a top-up.
type TopUpStatus struct {
	Status string `json:"status" enum:"OPEN,APPLIED,EXPIRED,FAILED,UNMATCHED"`
}

var errNoProvider = fault.New(fault.TopUpNotConfigured,
	"nobody takes payments for this server; its operator adjusts wallets")

// errBillingOff refuses a new top-up. An earlier one is still credited when it is paid.
var errBillingOff = fault.New(fault.TopUpNotConfigured,
	"nothing is charged here: the operator has switched billing off")

// startTopUp is POST /api/wallet/topup.
func (r Resource) startTopUp() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_start_top_up", Routes: operation.Routes("POST /api/wallet/topup"), Group: group,
		Summary: "Opens a checkout to top up the wallet",
		Description: "The balance grows when the payment provider confirms the payment, " +
			"usually within seconds. A customer has at most 100 open top-ups.",
		Access: auth.SignInOnly, Rate: limits.TopUp, Idempotency: operation.Required,
		Errors: []fault.Code{fault.TopUpNotConfigured, fault.ProviderFailed, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *struct {
		Body TopUpInput `body:"json"`
	}) (StartedTopUp, error) {
		if r.Payments == nil {
			return StartedTopUp{}, errNoProvider
		}
		replay, err := client.Begin[client.OpenTopUp](ctx, r.Client,
			client.ClaimCall{Node: r.Node, Boot: r.Boot}, from.Call)
		if err != nil {
			return StartedTopUp{}, err
		}
		if replay != nil {
			return newTopUp(*replay), nil
		}
		opened, err := r.open(ctx, from, in.Body.AmountCents)
		if err != nil { // temporary errors are not kept under the key
			r.release(ctx, from.Call)
			return StartedTopUp{}, err
		}
		return newTopUp(opened), nil
	})
}

func newTopUp(opened client.OpenedTopUp) StartedTopUp {
	return StartedTopUp{URL: opened.URL, SessionID: opened.Session}
}

// open makes the session and completes the claim. If the process dies in between, it leaves a
// session that nobody can pay, because nobody has its address.
func (r Resource) open(ctx context.Context, from *operation.Caller,
	cents int64) (client.OpenedTopUp, error) {
	if from.View.Settings().BillingOff {
		return client.OpenedTopUp{}, errBillingOff
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	session, err := r.Payments.Open(asking, payment.Order{Key: from.Call.Ticket.String(),
		Customer: from.Customer, Cluster: from.View.ClusterName(), Cents: cents})
	if err != nil {
		return client.OpenedTopUp{}, err
	}
	return client.Do(ctx, r.Client, client.OpenTopUp{Session: session.ID, URL: session.URL,
		Customer: from.Customer, Amount: cents * price.MicrosPerCent,
		Expires: session.Expires.UnixMilli()}, from.Call)
}

// release allows the same call to be made again. If it fails, the claim expires in two minutes. A
// call that was completed nevertheless stays.
func (r Resource) release(ctx context.Context, call *client.Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, _ = client.Do(ctx, r.Client, client.ReleaseClaim{}, call)
}

// topUpStatus is GET /api/wallet/topup/{sessionId}.
func (r Resource) topUpStatus() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_top_up", Routes: operation.Routes("GET /api/wallet/topup/{sessionId}"),
		Group: group, Summary: "Returns the state of a top-up",
		Description: "OPEN: not paid yet, or pending. APPLIED: paid and credited. EXPIRED and " +
			"FAILED: no money moved; these are deleted 30 days later. UNMATCHED: paid, but it " +
			"cannot be credited, for example because of another currency; the operator sees it.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.TopUpNotConfigured, fault.TopUpNotFound},
	}, func(_ context.Context, from *operation.Caller, in *struct {
		SessionID string `path:"sessionId" max:"255" doc:"Id as returned when the top-up was started"`
	}) (TopUpStatus, error) {
		if r.Payments == nil {
			return TopUpStatus{}, errNoProvider
		}
		known := from.View.TopUp(in.SessionID)
		if known == nil || known.Customer != from.Customer {
			return TopUpStatus{}, fault.Invalid(fault.TopUpNotFound, "sessionId",
				"no top-up has this session")
		}
		return TopUpStatus{Status: known.Status}, nil
	})
}

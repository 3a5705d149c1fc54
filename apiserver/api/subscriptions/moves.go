package subscriptions

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// askTime is how long the provider may take to answer.
	askTime = 20 * time.Second
	// releaseTime is how long ending a failed move may take.
	releaseTime = 10 * time.Second
)

// PlanInput is the requested plan.
type PlanInput struct {
	Plan string `json:"plan" required:"true" enum:"STARTER,BASIC,PRO,BUSINESS,TEAM" code:"invalid_plan"`
}

type planRequest struct {
	Body PlanInput `body:"json"`
}

var (
	errNoProvider = fault.New(fault.SubscriptionsNotConfigured,
		"nobody takes payments for this server: there is nothing to subscribe to")
	errNone        = fault.New(fault.NoSubscription, "there is no active subscription")
	errNoDowngrade = fault.New(fault.NoDowngrade, "no downgrade is scheduled")
)

// moveErrors are the errors of every change.
func moveErrors(more ...fault.Code) []fault.Code {
	return append([]fault.Code{fault.SubscriptionsNotConfigured, fault.ProviderFailed,
		fault.SubscriptionInFlight}, more...)
}

// get is GET /api/subscription.
func (r Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_subscription", Routes: operation.Routes("GET /api/subscription"),
		Group: group, Summary: "Returns the customer's legacy plan",
		Description: "INACTIVE with plan null: the customer is on pay-as-you-go, without a " +
			"plan.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (Subscription, error) {
		return r.newSubscription(from.View.Subscription(from.Customer)), nil
	})
}

// create is POST /api/subscription/create.
func (r Resource) create() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_create_subscription", Routes: operation.Routes("POST /api/subscription/create"),
		Group: group, Summary: "Opens a checkout to subscribe to a plan",
		Description: "An ACTIVE subscription is returned unchanged. The plan begins when the " +
			"payment provider confirms the payment. The free plan begins at once.",
		Access: auth.Write, Agents: operation.Adds,
		Rate: limits.TopUp, Errors: moveErrors(fault.InvalidPlan),
	}, func(ctx context.Context, from *operation.Caller, in *planRequest) (Subscription, error) {
		known := from.View.Subscription(from.Customer)
		plan, err := r.wanted(from.View, in.Body.Plan)
		switch {
		case err != nil:
			return Subscription{}, err
		case known.Active():
			return NewSubscription(known), nil
		case plan.Name == client.StarterPlan:
			return r.chooseFree(ctx, from)
		}
		return r.checkout(ctx, from, plan)
	})
}

// change is POST /api/subscription/change.
func (r Resource) change() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_change_subscription", Routes: operation.Routes("POST /api/subscription/change"),
		Group: group, Summary: "Changes the plan",
		Description: "A more expensive plan opens a checkout, and replaces the old plan once " +
			"paid. A cheaper plan is scheduled for the end of the period, and nothing is " +
			"charged now. The same plan changes nothing. A change that needs no payment ends " +
			"an open checkout. Without an active subscription only STARTER can be chosen; " +
			"create opens the checkout of another plan.",
		Access: auth.Write, Agents: operation.Destroys, Revocable: true, Rate: limits.TopUp,
		Errors: moveErrors(fault.InvalidPlan, fault.NoSubscription),
	}, func(ctx context.Context, from *operation.Caller, in *planRequest) (Subscription, error) {
		known := from.View.Subscription(from.Customer)
		plan, err := r.wanted(from.View, in.Body.Plan)
		switch {
		case err != nil:
			return Subscription{}, err
		case plan.Name == client.StarterPlan && !known.Active():
			return r.chooseFree(ctx, from)
		case !known.Active():
			return Subscription{}, errNone
		case known.Plan() == plan.Name, known.Scheduled() == plan.Name:
			return r.keepPlan(ctx, from, known)
		}
		if now := r.Plans.In(from.View).Find(known.Plan()); now == nil || plan.Level > now.Level {
			return r.checkout(ctx, from, plan)
		}
		if plan.Name == client.StarterPlan {
			return r.amend(ctx, from, payment.Amendment{Cancel: true})
		}
		return r.amend(ctx, from, payment.Amendment{Plan: plan.Name, Cents: plan.Cents()})
	})
}

// cancel is POST /api/subscription/cancel.
func (r Resource) cancel() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_cancel_subscription", Routes: operation.Routes("POST /api/subscription/cancel"),
		Group: group, Summary: "Ends the subscription at the end of its period",
		Description: "The plan stays until currentPeriodEnd, then becomes STARTER. Until then, " +
			"cancel-downgrade undoes this.",
		ToAgents: "The plan stays until currentPeriodEnd, then becomes STARTER. Until then, " +
			"svc_cancel_downgrade undoes this.",
		Access: auth.Write, Agents: operation.Destroys, Revocable: true,
		Rate: limits.TopUp, Errors: moveErrors(fault.NoSubscription),
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (Subscription, error) {
		known := from.View.Subscription(from.Customer)
		switch {
		case r.Payments == nil:
			return Subscription{}, errNoProvider
		case !known.Active():
			return Subscription{}, errNone
		case known.Plan() == client.StarterPlan, known.Scheduled() == client.StarterPlan:
			return r.keepPlan(ctx, from, known)
		}
		return r.amend(ctx, from, payment.Amendment{Cancel: true})
	})
}

// cancelDowngrade is POST /api/subscription/cancel-downgrade.
func (r Resource) cancelDowngrade() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_cancel_downgrade",
		Routes: operation.Routes("POST /api/subscription/cancel-downgrade"),
		Group:  group, Summary: "Keeps the current plan, and cancels the scheduled change",
		Access: auth.Write, Agents: operation.Sets,
		Rate: limits.TopUp, Errors: moveErrors(fault.NoDowngrade),
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (Subscription, error) {
		known := from.View.Subscription(from.Customer)
		switch {
		case r.Payments == nil:
			return Subscription{}, errNoProvider
		case known.Scheduled() == "":
			return Subscription{}, errNoDowngrade
		}
		keep := payment.Amendment{Plan: known.Paid}
		if known.Contract.Plan != known.Paid { // its price was changed, too
			plan := r.Plans.In(from.View).Find(known.Paid)
			switch {
			case known.PaidCents > 0: // regardless of the plan's current price
				keep.Cents = known.PaidCents
			case plan == nil:
				return Subscription{}, fault.New(fault.InvalidPlan,
					"the plan %s is not there any more", known.Paid)
			default:
				keep.Cents = plan.Cents()
			}
		}
		return r.amend(ctx, from, keep)
	})
}

// wanted returns a plan that a customer may choose.
func (r Resource) wanted(view *client.View, name string) (*plans.Plan, error) {
	if r.Payments == nil {
		return nil, errNoProvider
	}
	plan := r.Plans.In(view).Find(name)
	if plan == nil || !plan.Offered && plan.Name != client.StarterPlan {
		return nil, fault.Invalid(fault.InvalidPlan, "plan", "is not to be had")
	}
	return plan, nil
}

func (r Resource) chooseFree(ctx context.Context, from *operation.Caller) (Subscription, error) {
	made, err := client.Do(ctx, r.Client, client.ChooseFree{Customer: from.Customer}, nil)
	return NewSubscription(&made), err
}

// keepPlan answers the choice of what is there already. The customer leaves an open checkout.
func (r Resource) keepPlan(ctx context.Context, from *operation.Caller,
	known *client.Subscription) (Subscription, error) {
	if session := known.Checkout.Session; session != "" {
		if _, err := client.Do(ctx, r.Client,
			client.LeaveCheckout{Customer: from.Customer, Session: session}, nil); err != nil {
			return Subscription{}, err
		}
	}
	return NewSubscription(known), nil
}

// claimMove claims the subscription for a change, and returns its current state.
func (r Resource) claimMove(ctx context.Context, customer string) (client.Subscription, error) {
	return client.Do(ctx, r.Client, client.BeginMove{Customer: customer, Move: r.IDs.New()}, nil)
}

// releaseMove allows the next change. If it fails, the claim expires in two minutes.
func (r Resource) releaseMove(ctx context.Context, customer string, move ids.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, _ = client.Do(ctx, r.Client, client.EndMove{Customer: customer, Move: move}, nil)
}

// checkout opens a checkout for a plan, or returns the open one. If the process dies in between, it
// leaves a session that nobody can pay, because nobody has its address.
func (r Resource) checkout(ctx context.Context, from *operation.Caller,
	plan *plans.Plan) (Subscription, error) {
	begun, err := r.claimMove(ctx, from.Customer)
	if err != nil {
		return Subscription{}, err
	}
	switch {
	case begun.Plan() == plan.Name:
		r.releaseMove(ctx, from.Customer, begun.Move)
		return r.keepPlan(ctx, from, &begun)
	case r.isOpen(&begun) && begun.Checkout.Plan == plan.Name:
		r.releaseMove(ctx, from.Customer, begun.Move)
		return r.newSubscription(&begun), nil
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	session, err := r.Payments.Subscribe(asking, payment.PlanOrder{Key: begun.Move.String(),
		Customer: from.Customer, Cluster: from.View.ClusterName(), Plan: plan.Name,
		Cents: plan.Cents(), Revision: begun.Revision, Replaces: replacedBy(&begun)})
	if err != nil {
		r.releaseMove(ctx, from.Customer, begun.Move)
		return Subscription{}, err
	}
	made, err := client.Do(ctx, r.Client, client.OpenCheckout{Customer: from.Customer,
		Move: begun.Move, Checkout: client.Checkout{Session: session.ID, URL: session.URL,
			Plan: plan.Name, Expires: session.Expires.UnixMilli()}}, nil)
	return r.newSubscription(&made), err
}

// replacedBy returns the contract that a new one replaces; "": none.
func replacedBy(s *client.Subscription) string {
	if !s.Active() {
		return ""
	}
	return s.Contract.ID
}

// amend changes how the contract continues. If the process dies in between, the contract is already
// amended. The provider then sends a notice, and the state follows.
func (r Resource) amend(ctx context.Context, from *operation.Caller,
	change payment.Amendment) (Subscription, error) {
	begun, err := r.claimMove(ctx, from.Customer)
	if err != nil {
		return Subscription{}, err
	}
	known := from.View.Subscription(from.Customer)
	if !begun.Active() || begun.Contract.ID != known.Contract.ID || begun.Paid != known.Paid {
		r.releaseMove(ctx, from.Customer, begun.Move)
		return Subscription{}, fault.New(fault.SubscriptionInFlight,
			"the subscription has just changed")
	}
	if change.Cancel { // the provider keeps the price of the contract's plan
		change.Plan = begun.Contract.Plan
	}
	change.Key, change.Contract = begun.Move.String(), begun.Contract.ID
	change.Revision = begun.Revision
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	told, err := r.Payments.Amend(asking, change)
	if err != nil {
		r.releaseMove(ctx, from.Customer, begun.Move)
		return Subscription{}, err
	}
	made, err := client.Do(ctx, r.Client, client.TellContract{Customer: from.Customer,
		Contract: newContract(&told), Move: begun.Move}, nil)
	return NewSubscription(&made), err
}

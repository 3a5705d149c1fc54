package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// The replicated records of subscriptions.
type (
	Subscription  = state.Subscription
	Contract      = state.Contract
	Checkout      = state.Checkout
	Standing      = state.Standing
	Invoice       = state.Invoice
	InvoiceStatus = state.InvoiceStatus
	PlanCap       = command.PlanCap
)

// The commands on subscriptions.
type (
	// BeginMove precedes a change at the payment provider. OpenCheckout, TellContract or EndMove
	// ends the move.
	BeginMove     = command.BeginMovePayload
	OpenCheckout  = command.OpenCheckoutPayload
	TellContract  = command.TellContractPayload
	EndMove       = command.EndMovePayload
	EndCheckout   = command.EndCheckoutPayload
	LeaveCheckout = command.LeaveCheckoutPayload
	ChooseFree    = command.ChooseFreePayload
	PutInvoice    = command.PutInvoicePayload
)

// StarterPlan is the free plan.
const StarterPlan = state.StarterPlan

// The standings of a contract.
const (
	ContractPending = state.ContractPending
	ContractLapsed  = state.ContractLapsed
	ContractLive    = state.ContractLive
	ContractEnded   = state.ContractEnded
)

// The states of an invoice.
const (
	InvoiceDraft         = state.InvoiceDraft
	InvoiceOpen          = state.InvoiceOpen
	InvoiceUncollectible = state.InvoiceUncollectible
	InvoiceVoid          = state.InvoiceVoid
	InvoicePaid          = state.InvoicePaid
)

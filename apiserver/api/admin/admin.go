// Package admin owns what only an operator may do (decision 32).
package admin

import (
	"context"
	"iter"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Administration"

// Resource is what operators do, and what it takes.
type Resource struct {
	Client   Client
	Launcher *launch.Launcher
	Plans    *plans.Source
	Clock    clock.Clock
	IDs      ids.Source
	// Store and History tell what a customer has.
	Store   rowstore.Reads
	History *client.History
	// Operator is what administrators do to the cluster itself.
	Operator client.Operator
	// Lag is how many records each topic still holds, by its name.
	Lag func(ctx context.Context) map[string]int64
	// Accounts tell what has moved at the payment provider; nil: nobody takes payments.
	Accounts payment.Accounts
	// Recount holds the ledger of every closed run in a view against its page records.
	Recount func(ctx context.Context, view *client.View) iter.Seq2[RecountedRun, error]
}

// Client is what operators ask of the control plane.
type Client interface {
	client.Proposer
	client.Reader
	Status(ctx context.Context) (client.Status, error)
	Nodes(ctx context.Context) ([]client.NodeStatus, error)
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.settings(),
		r.putSettings(),
		r.prices(),
		r.putPrices(),
		r.customers(),
		r.customer(),
		r.blockCustomer(),
		r.limitUploads(),
		r.unblockCustomer(),
		r.previewRemoveCustomer(),
		r.removeCustomer(),
		r.adjustWallet(),
		r.requeue(),
		r.feedback(),
		r.salesFunnel(),
		r.audit(),
		r.status(),
		r.recount(),
		r.reconcile(),
		r.nodes(),
		r.work(),
		r.drain(),
		r.undrain(),
		r.removeNode(),
		r.backup(),
		r.restore(),
		r.backups(),
		r.restoreKept(),
	}
}
